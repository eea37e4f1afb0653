// All autoscalers: search, filter, sort, pages of fifty. The address keeps all of that for a reload, a link and the way back.
import { html, useEffect, useLayoutEffect, useMemo, useState } from "./lib.js";
import { isVertical, link, many } from "./format.js";
import { Badge, Empty, MiniBar, Replicas, STATES, Time, Title, Words, leaveOverviewAt } from "./parts.js";
import { Stories } from "./stories.js";
import { limits, now, onRows, rows } from "./stream.js";

const PAGE = 50;
const MOST_PAGES = 1e6;
const ORDER = ["problem", "scaling", "held", "paused", "waiting", "steady"];
// Until a kind is chosen, the one is shown of which there is something to see.
const DEFAULTS = { kind: "", state: "", namespace: "", text: "", sort: "", page: 0 };

// What a link may call a kind: the words of this page and of kubectl.
const KINDS = new Map([["horizontal", "horizontal"], ["hpa", "horizontal"], ["thpa", "horizontal"], ["vertical", "vertical"], ["vpa", "vertical"], ["tvpa", "vertical"]]);

// The view that an address asks for. People write and cut addresses, so what it does not say clearly is as if it were not there.
function viewOf(query) {
  const given = new URLSearchParams(query);
  const view = Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => [name, given.get(name) ?? value]));
  return {
    ...view,
    kind: KINDS.get(view.kind) ?? "",
    state: ORDER.includes(view.state) ? view.state : "",
    sort: SORTS.has(view.sort.replace(/^-/, "")) ? view.sort : "",
    page: Math.min(Math.max(Math.floor(Number(view.page)) - 1, 0) || 0, MOST_PAGES),
  };
}

function addressOf(view) {
  const chosen = Object.entries({ ...view, page: view.page && view.page + 1 }).filter(([, value]) => value);
  return chosen.length ? `#/?${new URLSearchParams(chosen)}` : "#/";
}

function useView(address) {
  const [view, setView] = useState(() => viewOf(address.query));
  useEffect(() => setView(viewOf(address.query)), [address]);
  useLayoutEffect(() => {
    leaveOverviewAt(addressOf(view));
    if (!/^(#\/?(\?|$)|$)/.test(location.hash)) return; // a navigation to another page is on its way
    // Browsers refuse very many changes in a short time; then the next one writes the address.
    try {
      history.replaceState(null, "", addressOf(view));
    } catch {}
  }, [view]);
  return [view, (fields) => setView((before) => ({ ...before, page: 0, ...fields }))];
}

export function Overview({ address }) {
  const [version, setVersion] = useState(0);
  const [view, change] = useView(address);
  useEffect(() => onRows(() => setVersion((number) => number + 1)), []);
  const all = useMemo(() => [...rows.values()], [version]);
  const vertical = all.filter((row) => isVertical(row)).length;
  const kind = view.kind || (vertical > 0 && vertical === all.length ? "vertical" : "horizontal");
  const ofKind = useMemo(() => all.filter((row) => isVertical(row) === (kind === "vertical")), [all, kind]);
  const found = useMemo(() => sorted(ofKind.filter((row) => fits(row, view)), view.sort), [ofKind, view]);
  const pages = Math.max(Math.ceil(found.length / PAGE), 1);
  const page = Math.min(view.page, pages - 1);
  const shown = found.slice(page * PAGE, page * PAGE + PAGE);
  const Table = kind === "vertical" ? VerticalTable : HorizontalTable;
  return html`<main id="main" tabindex="-1">
    <div class="page-head">
      <${Title}>Autoscalers<//>
      <${Kinds} vertical=${vertical} horizontal=${all.length - vertical} kind=${kind} change=${change} />
    </div>
    <${Stories} />
    <${States} rows=${ofKind} chosen=${view.state} change=${change} />
    <${Filters} rows=${ofKind} view=${view} kind=${kind} change=${change} />
    <p class="quiet" role="status">${countText(found.length, ofKind.length, kind)}</p>
    ${limits[kind] && html`<p class="quiet limit">${limits[kind]}</p>`}
    ${shown.length
      ? html`<${Table} rows=${shown} sort=${view.sort} change=${change} />`
      : html`<${Nothing} kind=${kind} isFiltered=${ofKind.length > 0} change=${change} />`}
    ${pages > 1 && html`<${Pager} page=${page} pages=${pages} change=${change} />`}
  </main>`;
}

// Whether all autoscalers of a kind could be listed. If not, a number would claim too much.
const isRead = (kind) => now.program !== null && now.program[kind].isRead;
// A kind that the cluster does not serve has no number, as one that cannot be read.
const isCounted = (kind) => isRead(kind) && now.program[kind].isServed;

function countText(found, all, kind) {
  if (!all && !isCounted(kind)) return "";
  const text = found === all ? many(all, "autoscaler") : `${found} of ${many(all, "autoscaler")}`;
  return isRead(kind) ? text : `${text}; there may be more, which cannot be read`;
}

const EMPTY = {
  horizontal: () => html`There is no HPA here yet. Apply one of kind <code>HorizontalPodAutoscaler</code> in <code>autoscaling.trimtab.dev/v2</code>,
    or turn the native ones of a namespace into it: <code>kubectl get hpa -n NAMESPACE -o yaml | trimtab convert - --to trimtab | kubectl apply -f -</code>`,
  vertical: () => html`There is no VPA here yet. Apply one of kind <code>VerticalPodAutoscaler</code> in <code>autoscaling.trimtab.dev/v1</code> that names your
    workload; with <code>updateMode: "Off"</code> it only recommends.`,
};

// Why the list is empty, and what to do next.
function Nothing({ kind, isFiltered, change }) {
  if (isFiltered)
    return html`<div class="empty"><p>Nothing fits these filters.</p>
      <button type="button" onClick=${() => change({ state: "", namespace: "", text: "" })}>Clear the filters</button></div>`;
  if (now.program === null) return html`<${Empty}>${now.connection.state === "lost" ? "Nothing has been read yet." : "Loading …"}<//>`;
  if (!isRead(kind)) {
    const hasProblem = now.program.notices.some((notice) => notice.isProblem);
    return html`<${Empty}>${hasProblem ? "These autoscalers cannot be read: the message above says why." : "Reading the cluster …"}<//>`;
  }
  if (limits[kind] && isCounted(kind)) return html`<${Empty}>There is no autoscaler of this kind that you may see. Ask for the right to list them in your namespaces.<//>`;
  return html`<${Empty}>${now.program[kind].hint ? html`<${Words} text=${now.program[kind].hint} />` : EMPTY[kind]()}<//>`;
}

const name = (row) => `${row.namespace}/${row.name}/${row.id}`;
const ratio = (row) => Math.max(...(row.metrics || []).map((metric) => metric.ratio ?? (metric.isOut ? Infinity : -1)), -1);
// How each column sorts. Without a choice problems come first, then those that need more than they get, and the rest by name, so that rows do not
// jump with each decision.
const SORTS = new Map([
  ["", (row) => [row.state === "problem" ? 0 : row.isShort ? 1 : 2]],
  ["state", (row) => [ORDER.indexOf(row.state)]],
  ["name", () => []],
  ["metrics", (row) => [-ratio(row)]],
  ["replicas", (row) => [-(row.desired ?? 0)]],
  ["decided", (row) => [-(row.at ?? 0)]],
  ["mode", (row) => [row.mode ?? ""]],
]);

function sorted(found, sort) {
  const isReversed = sort.startsWith("-");
  const key = SORTS.get(isReversed ? sort.slice(1) : sort);
  const keyed = found.map((row) => [...key(row), name(row), row]);
  keyed.sort((a, b) => {
    const place = a.findIndex((part, index) => part !== b[index]);
    return place < 0 ? 0 : a[place] < b[place] ? -1 : 1;
  });
  const inOrder = keyed.map((parts) => parts[parts.length - 1]);
  return isReversed ? inOrder.reverse() : inOrder;
}

function fits(row, view) {
  if (view.namespace && row.namespace !== view.namespace) return false;
  if (view.state && row.state !== view.state) return false;
  const text = view.text.trim().toLowerCase();
  return !text || `${row.namespace}/${row.name} ${row.target} ${row.summary}`.toLowerCase().includes(text);
}

function Kinds({ horizontal, vertical, kind, change }) {
  const button = (name, label, number) =>
    html`<button type="button" aria-pressed=${kind === name} onClick=${() => change({ kind: name, state: "" })}>
      ${label} <span class="count">${number || isCounted(name) ? number : "–"}</span>
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

function Filters({ rows: all, view, kind, change }) {
  // A link may name a namespace without autoscalers, which is still what the list is filtered by.
  const namespaces = [...new Set([...all.map((row) => row.namespace), ...(view.namespace ? [view.namespace] : [])])].sort();
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <label><span>Search</span>
      <input type="search" value=${view.text} placeholder="name, target or reason" autocomplete="off" spellcheck="false"
        onInput=${(event) => change({ text: event.target.value })} /></label>
    <label><span>Namespace</span>
      <select value=${view.namespace} onChange=${(event) => change({ namespace: event.target.value })}>
        <option value="">all</option>
        ${namespaces.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select></label>
    <label class="phone-only"><span>Sort by</span>
      <select value=${view.sort} onChange=${(event) => change({ sort: event.target.value })}>
        <option value="">problems first</option>
        ${["state", "name", ...(kind === "vertical" ? ["mode"] : ["metrics", "replicas", "decided"])].map((by) => html`<option key=${by} value=${by}>${by}</option>`)}
      </select></label>
  </form>`;
}

// A header that sorts: first click as people look for it, second click the other way round.
function Head({ by, sort, change, number, children }) {
  const next = sort === by ? `-${by}` : by;
  const direction = sort === by ? "ascending" : sort === `-${by}` ? "descending" : undefined;
  return html`<th scope="col" class=${number ? "number" : ""} aria-sort=${direction}>
    <button type="button" class="sort" onClick=${() => change({ sort: next })}>${children}<span aria-hidden="true">${direction ? (direction === "ascending" ? " ▾" : " ▴") : ""}</span></button>
  </th>`;
}

const HorizontalTable = ({ rows: shown, ...how }) =>
  html`<div class="table-frame"><table class="list">
    <thead><tr>
      <${Head} by="state" ...${how}>State<//><${Head} by="name" ...${how}>Autoscaler<//><${Head} by="metrics" ...${how}>Metrics / target<//>
      <${Head} by="replicas" number ...${how}>Replicas<//><th scope="col">Range</th><th scope="col">Why</th><${Head} by="decided" ...${how}>Decided<//>
    </tr></thead>
    <tbody>
      ${shown.map(
        (row) => html`<tr key=${row.id}>
          <td><${Badge} state=${row.state} /></td>
          <td class="name"><a href=${link(row.id)}>${row.name}</a>
            <span class="quiet">${row.namespace} · ${row.target}${row.id.startsWith("native") ? " · native" : ""}</span>
            ${row.isDryRun && html`<span class="tag">dry run</span>`}</td>
          <td class="metrics">${row.metrics.map((metric) => html`<${Reading} metric=${metric} />`)}</td>
          <td class="number"><${Replicas} row=${row} /></td>
          <td class="range-cell"><${MiniBar} row=${row} /><span class="quiet">${row.low}–${row.high}</span></td>
          <td class="why">${row.summary}</td>
          <td class="when"><${Time} at=${row.at} /></td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;

const Reading = ({ metric }) =>
  html`<div class="reading"><span class="quiet">${metric.name}</span>
    <span class="figures"><b class=${metric.isOut ? "out" : ""}>${metric.value}</b> / ${metric.target}${metric.isPerPod ? html` <span class="quiet">per pod</span>` : ""}</span></div>`;

const VerticalTable = ({ rows: shown, ...how }) =>
  html`<div class="table-frame"><table class="list">
    <thead><tr>
      <${Head} by="state" ...${how}>State<//><${Head} by="name" ...${how}>Autoscaler<//><${Head} by="mode" ...${how}>Mode<//>
      <th scope="col">Applies to</th><th scope="col">Target</th>
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
