// One VPA: usage history per container, target and bounds against requests, who controls which pod, and what comes next.
import { html } from "./lib.js";
import { amount, bytes, many, ticksOf } from "./format.js";
import { Back, Badge, Card, Conditions, Copyable, Empty, Hidden, Scroll, Title, useWidth } from "./parts.js";
import { Events, Without, usePage } from "./hpa.js";

export function VerticalPage({ id }) {
  const [page, problem] = usePage("/api/vpa", id, 10);
  if (!page) return html`<${Without} id=${id} problem=${problem} />`;
  const { row } = page;
  return html`<main id="main" tabindex="-1">
    <${Back} />
    <div class="page-head">
      <div><${Title}>${row.name}<//><p class="quiet">${row.namespace} · sizes ${row.target} · mode ${row.mode}</p></div>
      <div class="head-state"><${Badge} state=${row.state} /></div>
    </div>
    <${Hidden} parts=${page.hidden} />
    <div class="grid">
      <${Card} id="role" title="Applies to" wide>
        <p class="summary">${row.scope}</p>
        <p class="quiet">${page.level > 0 ? "A scope of its own: it goes before a VPA of the whole target." : "The whole target, where no VPA with a scope goes before it."}</p>
      <//>
      ${page.amounts.length
        ? page.amounts.map((view) => html`<${Amount} key=${`${view.container}/${view.resource}`} view=${view} page=${page} />`)
        : html`<${Card} id="none" title="Recommendation" wide><${Empty}>${row.summary}<//><//>`}
      ${page.requests &&
      html`<${Card} id="requests" title="Requests to copy" wide>
        <p class="quiet">The targets as requests of the pod template, memory rounded up to whole MiB. Of use where this VPA only recommends (mode Off), and for the first pods of a workload.</p>
        <${Copyable} text=${page.requests} label="Requests of each container as YAML" />
      <//>`}
      ${page.showsPods && html`<${Pods} page=${page} />`}
      ${page.cuts.length > 0 &&
      html`<${Card} id="cuts" title="Cut to policy"><ul class="plain">${page.cuts.map((cut) => html`<li>${cut}</li>`)}</ul><//>`}
      ${page.showsEvents &&
      html`<${Card} id="events" title="Events">${page.events.length ? html`<${Events} events=${page.events} />` : html`<${Empty}>None so far.<//>`}<//>`}
      <${Card} id="conditions" title="Conditions" wide=${page.showsEvents === page.cuts.length > 0}><${Conditions} conditions=${page.conditions} /><//>
    </div>
  </main>`;
}

const amountText = (value, unit) => (unit === "bytes" ? bytes(value) : amount(value, unit));

function Amount({ view, page }) {
  const requested = [...new Set(view.requests.map(([, value]) => value))];
  return html`<${Card} id=${`amount-${view.container}-${view.resource}`} title=${`${view.container}: ${view.resource}`}
    aside=${view.resource === "cpu" && page.showsUsage && html`<span class="quiet">${many(view.samples, "sample")}</span>`}>
    <dl class="facts">
      <div><dt>lower bound</dt><dd>${view.lowerText || "–"}</dd></div>
      <div><dt>target</dt><dd class="strong">${view.targetText}</dd></div>
      <div><dt>upper bound</dt><dd>${view.upperText || "–"}</dd></div>
      ${page.showsPods && html`<div><dt>requested now</dt><dd>${requested.map((value) => amountText(value, view.unit)).join(", ") || "–"}</dd></div>`}
    </dl>
    ${(page.showsUsage || page.showsPods) && html`<${Histogram} view=${view} requested=${requested} />`}
    ${view.reasons.length > 0 &&
    html`<details><summary>How these numbers came about</summary><ul class="plain">${view.reasons.map((text) => html`<li>${text}</li>`)}</ul></details>`}
  <//>`;
}

const HEIGHT = 150;

function Histogram({ view, requested }) {
  const [frame, width] = useWidth(480);
  const bars = view.histogram;
  const marks = [view.lower, view.target, view.upper, ...requested].filter((value) => value !== null);
  const last = bars.length ? bars[bars.length - 1].end : 0;
  const near = Math.max(view.target || 0, last, ...requested) * 1.15;
  // An upper bound far out would press all bars against the left edge: then it is given in words only.
  const top = Math.max(near, ...marks.filter((value) => value <= near * 2)) || 1;
  const place = (value) => 8 + (Math.min(value, top) / top) * (width - 16);
  const most = Math.max(...bars.map((bar) => bar.weight), 1e-9);
  const isLate = (value) => place(value) > width - 60;
  const line = (value, name, text, y) =>
    value !== null && value <= top &&
    html`<line class=${name} x1=${place(value)} x2=${place(value)} y1="16" y2=${HEIGHT - 22} />
      <text class="mark-text ${name}-text" x=${place(value) + (isLate(value) ? -5 : 5)} y=${y} text-anchor=${isLate(value) ? "end" : "start"}>${text}</text>`;
  const words = `Usage history of ${view.container} ${view.resource}: target ${view.targetText}, from ${view.lowerText} to ${view.upperText}`;
  const ticks = ticksOf(top, view.unit, width / 90);
  return html`<div ref=${frame}><svg class="histogram" width=${width} height=${HEIGHT} viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label=${words}>
    ${view.lower !== null &&
    html`<rect class="bounds" x=${place(view.lower)} y="16" width=${Math.max(place(view.upper ?? top) - place(view.lower), 1)} height=${HEIGHT - 38} />`}
    ${bars.map((bar) => {
      const height = Math.max((bar.weight / most) * (HEIGHT - 66), bar.weight > 0 ? 1 : 0);
      return html`<rect class="bar" x=${place(bar.start)} y=${HEIGHT - 22 - height} width=${Math.max(place(bar.end) - place(bar.start) - 1, 1)} height=${height}>
        <title>${amountText(bar.start, view.unit)} – ${amountText(bar.end, view.unit)}: ${(bar.weight * 100).toFixed(1)} %</title></rect>`;
    })}
    <line class="rail" x1="8" x2=${width - 8} y1=${HEIGHT - 22} y2=${HEIGHT - 22} />
    ${ticks.map((value) => html`<text class="tick-text" x=${Math.min(Math.max(place(value), 22), width - 34)} y=${HEIGHT - 7} text-anchor="middle">${amountText(value, view.unit)}</text>`)}
    ${requested.map((value) => line(value, "request", "request", 40))} ${line(view.target, "target", "target", 26)}
  </svg></div>`;
}

const Pods = ({ page }) =>
  html`<${Card} id="pods" title="Pods" wide aside=${html`<span class="quiet">${many(page.podsTotal, "pod")}</span>`}>
    ${page.pods.length
      ? html`<${Scroll} label="Pods" tall><table class="pods">
          <thead><tr><th scope="col">Pod</th><th scope="col">Controlled by</th><th scope="col">Size now → wanted</th><th scope="col">Next</th></tr></thead>
          <tbody>${page.pods.map(
            (pod) => html`<tr key=${pod.name} class=${pod.isOurs ? "" : "left-out"}>
              <td class="pod">${pod.name}</td>
              <td data-label="Controlled by"><span>${pod.controlledBy || "no VPA"}${pod.reason && html`<span class="quiet"> – ${pod.reason}</span>`}</span></td>
              <td data-label="Size now → wanted"><div>${pod.sizes.map((size) => html`<div>${size}</div>`)}</div></td>
              <td data-label="Next">${pod.update || "–"}</td>
            </tr>`,
          )}</tbody></table><//>`
      : html`<${Empty}>The target has no pod now.<//>`}
  <//>`;
