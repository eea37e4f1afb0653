// Small pieces that several pages share.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { iso, moment, zone } from "./format.js";

export const STATES = {
  scaling: "Scaling",
  steady: "Steady",
  held: "Held",
  paused: "Paused",
  problem: "Problem",
  waiting: "Waiting",
};

export const Badge = ({ state }) =>
  html`<span class="badge ${state}"><span class="dot" aria-hidden="true"></span>${STATES[state] || state}</span>`;

// A time in the reader's zone, which the header names; UTC is in its title.
export const Time = ({ at, withZone }) =>
  at
    ? html`<time datetime=${iso(at)} title=${iso(at).replace("T", " ").replace(/\.\d+Z/, " UTC")}>${moment(at)}${withZone ? ` ${zone(at)}` : ""}</time>`
    : html`<span>–</span>`;

// A sentence of the program, with each time in the reader's own time zone, and what to type as code. Sentences are quoted elsewhere, so they name the zone.
export const Words = ({ text }) =>
  (text || "").split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|`[^`]+`)/).map((part, index) =>
    index % 2 === 0 ? part : part[0] === "`" ? html`<code>${part.slice(1, -1)}</code>` : html`<${Time} at=${Date.parse(part) / 1000} withZone />`,
  );

let isTitleExpected = false;
export const expectTitle = () => (isTitleExpected = true);

// The title of a page. After a navigation it takes the focus, so that the keyboard goes on there and screen readers say it.
export function Title({ children }) {
  const place = useRef(null);
  useLayoutEffect(() => {
    if (isTitleExpected) place.current.focus({ preventScroll: true });
    isTitleExpected = false;
  }, []);
  return html`<h1 ref=${place} tabindex="-1">${children}</h1>`;
}

export const Back = () => html`<p class="back"><a href=${overviewAddress()}>‹ All autoscalers</a></p>`;

// The overview as it was left, with its filters.
let left = "#/";
export const overviewAddress = () => left;
export const leaveOverviewAt = (address) => (left = address);

// A region that scrolls can be scrolled by keyboard only if it takes the focus.
export const Scroll = ({ label, tall, children }) =>
  html`<div class="scroll ${tall ? "tall" : ""}" tabindex="0" role="group" aria-label=${label}>${children}</div>`;

// A text to take along, with a button that copies it.
export function Copyable({ text, label }) {
  const [said, say] = useState("");
  const code = useRef(null);
  useEffect(() => say(""), [text]);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => say("Copied"),
      // Without the permission the text is selected, for Ctrl-C.
      () => (getSelection().selectAllChildren(code.current), say("Press Ctrl-C to copy")),
    );
  return html`<div class="copyable">
    <pre tabindex="0" aria-label=${label}><code ref=${code}>${text}</code></pre>
    <p><button type="button" class="small" onClick=${copy}>Copy</button> <span class="quiet" role="status">${said}</span></p>
  </div>`;
}

export const Card = ({ title, id, aside, children, wide }) =>
  html`<section class="card ${wide ? "wide" : ""}" aria-labelledby=${id}>
    <header class="card-head"><h2 id=${id}>${title}</h2>${aside}</header>
    ${children}
  </section>`;

// Where the replicas stand between their bounds: a thin bar with a mark, and words beside it.
export function MiniBar({ row }) {
  const width = 84;
  const most = Math.max(row.high, row.current, row.desired, 1);
  const isKnown = row.current !== null;
  const place = (replicas) => 6 + (replicas / most) * (width - 12);
  return html`<svg class="minibar" width=${width} height="14" viewBox="0 0 ${width} 14" aria-hidden="true">
    <line class="rail" x1="6" x2=${width - 6} y1="7" y2="7" />
    <line class="range" x1=${place(row.low)} x2=${place(row.high)} y1="7" y2="7" />
    ${isKnown && row.desired !== row.current && html`<circle class="desired" cx=${place(row.desired)} cy="7" r="4.2" />`}
    ${isKnown && html`<circle class="current" cx=${place(row.current)} cy="7" r="3.4" />`}
  </svg>`;
}

export const Replicas = ({ row }) =>
  !row.at || row.current === null
    ? html`<span class="quiet">–</span>`
    : row.desired !== row.current
    ? html`<span class="figures"><b>${row.current}</b> <span aria-label="scales to">→</span> <b>${row.desired}</b></span>`
    : html`<span class="figures"><b>${row.current}</b></span>`;

// The width that a drawing has, so that its text is as large on a phone as on a wide screen.
export function useWidth(fallback) {
  const place = useRef(null);
  const [width, setWidth] = useState(fallback);
  useLayoutEffect(() => {
    const fit = () => place.current && place.current.clientWidth > 0 && setWidth(place.current.clientWidth);
    fit();
    const watcher = new ResizeObserver(fit);
    watcher.observe(place.current);
    return () => watcher.disconnect();
  }, []);
  return [place, width];
}

// The parts that the viewer's rights leave out, each with the right that is missing.
export const Hidden = ({ parts }) =>
  parts.length > 0 &&
  html`<details class="note hidden-parts">
    <summary>${parts.length === 1 ? "One part of this page is" : `${parts.length} parts of this page are`} not shown, because you lack rights</summary>
    <ul>${parts.map((part) => html`<li key=${part}>${part}</li>`)}</ul>
  </details>`;

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

export const Conditions = ({ conditions }) =>
  conditions.length === 0
    ? html`<${Empty}>None so far.<//>`
    : html`<ul class="conditions" tabindex="0" aria-label="Conditions">
    ${conditions.map(
      (condition) => html`<li key=${condition.type}>
        <span class="condition ${condition.status === "True" ? "yes" : "no"}">${condition.type}: ${condition.status}</span>
        <span class="reason">${condition.reason}</span>
        <span class="quiet">${condition.message}</span>
      </li>`,
    )}
  </ul>`;
