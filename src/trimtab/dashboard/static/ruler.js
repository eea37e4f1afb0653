// The decision on one line: bounds, what policies allow now, what there is, what is asked for, what is decided.
import { html } from "./lib.js";
import { useWidth } from "./parts.js";

const LEFT = 16;

export function Ruler({ decision, before }) {
  const [frame, width] = useWidth(640);
  const numbers = [decision.high, decision.current, decision.desired, decision.asked || 0, before ? before.desired : 0];
  const most = Math.max(...numbers, 1);
  const top = most > decision.high * 3 && decision.high > 0 ? Math.max(decision.high, decision.current, decision.desired) * 1.15 : most;
  const place = (replicas) => LEFT + (Math.min(replicas, top) / top) * (width - 2 * LEFT);
  const asked = decision.asked;
  const words =
    `${decision.current} ${decision.current === 1 ? "replica" : "replicas"} now, ${decision.desired} decided` +
    (asked === null ? "" : `, the metrics ask for ${asked}`) +
    `; bounds ${decision.low} to ${decision.high}; now allowed from ${decision.down.allowed} to ${decision.up.allowed}`;
  const step = tick(top, width);
  const keep = (x) => Math.min(Math.max(x, 34), width - 34);
  const ticks = [];
  for (let at = 0; at <= top; at += step) ticks.push(at);
  return html`<figure class="ruler" ref=${frame}>
    <svg width=${width} height="92" viewBox="0 0 ${width} 92" role="img" aria-label=${words}>
      <line class="rail" x1=${LEFT} x2=${width - LEFT} y1="46" y2="46" />
      <line class="bounds" x1=${place(decision.low)} x2=${place(decision.high)} y1="46" y2="46" />
      <line class="allowed" x1=${place(decision.down.allowed)} x2=${place(decision.up.allowed)} y1="46" y2="46" />
      ${ticks.map(
        (at) => html`<g key=${at}>
          <line class="tick" x1=${place(at)} x2=${place(at)} y1="55" y2="60" />
          <text class="tick-text" x=${place(at)} y="73" text-anchor="middle">${at}</text>
        </g>`,
      )}
      ${asked !== null &&
      html`<path class="asked" d="M${place(asked)} 35 l-6 -11 h12 z" />
        <text class="mark-text asked-text" x=${keep(place(asked))} y="17" text-anchor="middle">asked ${asked}${asked > top ? " ›" : ""}</text>`}
      <circle class="desired" cx=${place(decision.desired)} cy="46" r="10" />
      <circle class="current" cx=${place(decision.current)} cy="46" r="6" />
      <text class="bound-text" x=${keep(place(decision.low))} y="88" text-anchor="middle">min ${decision.low}</text>
      ${decision.high !== decision.low &&
      html`<text class="bound-text" x=${keep(place(decision.high))} y="88" text-anchor="middle">max ${decision.high}</text>`}
    </svg>
    <figcaption>
      <span><i class="key current-key" aria-hidden="true"></i>now <b>${decision.current}</b></span>
      <span><i class="key desired-key" aria-hidden="true"></i>decided <b>${decision.desired}</b></span>
      <span><i class="key asked-key" aria-hidden="true"></i>metrics ask for <b>${asked === null ? "–" : asked}</b></span>
      <span><i class="key allowed-key" aria-hidden="true"></i>allowed now <b>${decision.down.allowed}–${decision.up.allowed}</b></span>
      <span><i class="key bounds-key" aria-hidden="true"></i>bounds <b>${decision.low}–${decision.high}</b></span>
    </figcaption>
  </figure>`;
}

function tick(top, width) {
  const rough = top / Math.min(Math.max(width / 60, 4), 14);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= rough) || power;
}

// A metric against its target: the band is the tolerance, inside of which nothing happens.
export function Gauge({ metric, text }) {
  const [frame, measured] = useWidth(300);
  if (metric.value === null || !metric.target) return html`<div ref=${frame}></div>`;
  const width = Math.min(measured, 520);
  const top = Math.max(metric.value, metric.up || 0, metric.target * 1.6) * 1.05;
  const place = (value) => 6 + (value / top) * (width - 12);
  const from = metric.down === null ? 0 : metric.down;
  const to = metric.up === null ? top : metric.up;
  return html`<div ref=${frame}><svg class="gauge" width=${width} height="26" viewBox="0 0 ${width} 26" role="img" aria-label=${text}>
    <line class="rail" x1="6" x2=${width - 6} y1="13" y2="13" />
    <rect class="band" x=${place(from)} y="6" width=${Math.max(place(to) - place(from), 1)} height="14" rx="3" />
    <line class="target" x1=${place(metric.target)} x2=${place(metric.target)} y1="3" y2="23" />
    <circle class="value ${outside(metric) ? "out" : ""}" cx=${place(metric.value)} cy="13" r="6" />
  </svg></div>`;
}

export const outside = (metric) =>
  metric.value !== null &&
  ((metric.up !== null && metric.value > metric.up) || (metric.down !== null && metric.value < metric.down));
