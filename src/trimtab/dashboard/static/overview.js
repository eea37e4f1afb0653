// All autoscalers: search, filter, pages of fifty; the rows change under the reader without moving.
import { html, useEffect, useMemo, useState } from "./lib.js";
import { limits, onRows, rows } from "./api.js";
import { link, many } from "./format.js";
import { Badge, Empty, MiniBar, Replicas, STATES, Time } from "./parts.js";

const PAGE = 50;
const ORDER = ["problem", "scaling", "held", "paused", "waiting", "steady"];

// Kept while the page is open, so that coming back from an autoscaler finds the list as it was left.
// Until a kind is chosen, the one is shown of which there is something to see.
const kept = { kind: "", text: "", namespace: "", state: "", page: 0 };

export function Overview() {
  const [version, setVersion] = useState(0);
  const [view, setView] = useState(kept);
  useEffect(() => onRows(() => setVersion((number) => number + 1)), []);
  const change = (fields) => setView(Object.assign(kept, { page: 0 }, fields) && { ...kept });
  const all = useMemo(() => [...rows.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1)), [version]);
  const vertical = all.filter((row) => row.id.startsWith("vpa/")).length;
  const kind = view.kind || (vertical > 0 && vertical === all.length ? "vertical" : "horizontal");
  const ofKind = useMemo(
    () => all.filter((row) => row.id.startsWith("vpa/") === (kind === "vertical")),
    [all, kind],
  );
  const found = useMemo(() => ofKind.filter((row) => fits(row, view)), [ofKind, view]);
  const pages = Math.max(Math.ceil(found.length / PAGE), 1);
  const page = Math.min(view.page, pages - 1);
  const shown = found.slice(page * PAGE, page * PAGE + PAGE);
  return html`<main id="main" tabindex="-1">
    <div class="page-head">
      <h1>Autoscalers</h1>
      <${Kinds} vertical=${vertical} horizontal=${all.length - vertical} kind=${kind} change=${change} />
    </div>
    <${States} rows=${ofKind} chosen=${view.state} change=${change} />
    <${Filters} rows=${ofKind} view=${view} change=${change} />
    <p class="quiet" role="status">${countText(found.length, ofKind.length)}</p>
    ${limits[kind] && html`<p class="quiet limit">${limits[kind]}</p>`}
    ${shown.length
      ? kind === "vertical"
        ? html`<${VerticalTable} rows=${shown} />`
        : html`<${HorizontalTable} rows=${shown} />`
      : html`<${Empty}>${ofKind.length ? "Nothing fits these filters." : limits[kind] ? "There is no autoscaler of this kind that you may see." : "No autoscaler of this kind is known yet."}<//>`}
    ${pages > 1 && html`<${Pager} page=${page} pages=${pages} change=${change} />`}
  </main>`;
}

const order = (row) => `${row.namespace}/${row.name}/${row.id}`;

const countText = (found, all) => (found === all ? many(all, "autoscaler") : `${found} of ${many(all, "autoscaler")}`);

function fits(row, view) {
  if (view.namespace && row.namespace !== view.namespace) return false;
  if (view.state && row.state !== view.state) return false;
  const text = view.text.trim().toLowerCase();
  return !text || `${row.namespace}/${row.name} ${row.target} ${row.summary}`.toLowerCase().includes(text);
}

function Kinds({ horizontal, vertical, kind, change }) {
  const button = (name, label, number) =>
    html`<button type="button" aria-pressed=${kind === name} onClick=${() => change({ kind: name, state: "" })}>
      ${label} <span class="count">${number}</span>
    </button>`;
  return html`<div class="segments" role="group" aria-label="Kind of autoscaler">
    ${button("horizontal", "Horizontal", horizontal)} ${button("vertical", "Vertical", vertical)}
  </div>`;
}

function States({ rows: all, chosen, change }) {
  const counts = {};
  for (const row of all) counts[row.state] = (counts[row.state] || 0) + 1;
  return html`<div class="states" role="group" aria-label="Filter by state">
    ${ORDER.filter((state) => counts[state]).map(
      (state) => html`<button key=${state} type="button" class="state ${state}" aria-pressed=${chosen === state}
        onClick=${() => change({ state: chosen === state ? "" : state })}>
        <span class="dot" aria-hidden="true"></span><b>${counts[state]}</b> ${STATES[state].toLowerCase()}
      </button>`,
    )}
  </div>`;
}

function Filters({ rows: all, view, change }) {
  const namespaces = [...new Set(all.map((row) => row.namespace))].sort();
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <label><span>Search</span>
      <input type="search" value=${view.text} placeholder="name, target or reason" autocomplete="off" spellcheck="false"
        onInput=${(event) => change({ text: event.target.value })} /></label>
    <label><span>Namespace</span>
      <select value=${view.namespace} onChange=${(event) => change({ namespace: event.target.value })}>
        <option value="">all</option>
        ${namespaces.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select></label>
  </form>`;
}

const HorizontalTable = ({ rows: shown }) =>
  html`<div class="table-frame"><table class="list">
    <thead><tr>
      <th scope="col">State</th><th scope="col">Autoscaler</th><th scope="col" class="number">Replicas</th>
      <th scope="col">Range</th><th scope="col">Why</th><th scope="col">Decided</th>
    </tr></thead>
    <tbody>
      ${shown.map(
        (row) => html`<tr key=${row.id}>
          <td><${Badge} state=${row.state} /></td>
          <td class="name"><a href=${link(row.id)}>${row.name}</a>
            <span class="quiet">${row.namespace} · ${row.target}${row.id.startsWith("native/") ? " · native" : ""}</span>
            ${row.isDryRun && html`<span class="tag">dry run</span>`}</td>
          <td class="number"><${Replicas} row=${row} /></td>
          <td class="range-cell"><${MiniBar} row=${row} /><span class="quiet">${row.low}–${row.high}</span></td>
          <td class="why">${row.summary}</td>
          <td class="when"><${Time} at=${row.at} /></td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;

const VerticalTable = ({ rows: shown }) =>
  html`<div class="table-frame"><table class="list">
    <thead><tr>
      <th scope="col">State</th><th scope="col">Autoscaler</th><th scope="col">Mode</th>
      <th scope="col">Speaks for</th><th scope="col">Target</th>
    </tr></thead>
    <tbody>
      ${shown.map(
        (row) => html`<tr key=${row.id}>
          <td><${Badge} state=${row.state} /></td>
          <td class="name"><a href=${link(row.id)}>${row.name}</a><span class="quiet">${row.namespace} · ${row.target}</span></td>
          <td>${row.mode}</td><td>${row.scope}</td><td class="why">${row.amounts || row.summary}</td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;

const Pager = ({ page, pages, change }) =>
  html`<nav class="pager" aria-label="Pages">
    <button type="button" disabled=${page === 0} onClick=${() => change({ page: page - 1 })}>Previous</button>
    <span>Page ${page + 1} of ${pages}</span>
    <button type="button" disabled=${page >= pages - 1} onClick=${() => change({ page: page + 1 })}>Next</button>
  </nav>`;
