// Turns the lab's loads up and down.
import { html, useEffect, useState } from "./lib.js";
import { get, post } from "./api.js";
import { isVertical, link } from "./format.js";
import { Badge, Empty, Replicas, Title } from "./parts.js";
import { onRows, rows } from "./stream.js";

export function Loads() {
  const [loads, setLoads] = useState(null);
  const [problem, setProblem] = useState("");
  const [, setVersion] = useState(0);
  useEffect(() => onRows(() => setVersion((number) => number + 1)), []);
  useEffect(() => {
    get("/api/loads").then((found) => setLoads(found.loads), (error) => setProblem(error.message));
  }, []);
  const set = (name, factor) => {
    setLoads((before) => before.map((load) => (load.name === name ? { ...load, factor } : load)));
    post("/api/loads", { name, factor }).then((found) => (setLoads(found.loads), setProblem("")), (error) => setProblem(error.message));
  };
  return html`<main id="main" tabindex="-1">
    <div class="page-head"><div><${Title}>Load<//><p class="quiet">Multiply what each workload has to do, and watch the autoscalers answer.</p></div></div>
    ${problem && html`<p class="alarm" role="alert">${problem}</p>`}
    ${loads && loads.length === 0 && html`<${Empty}>There is no load here that could be changed.<//>`}
    <div class="grid">${(loads || []).map((load) => html`<${Control} key=${load.name} load=${load} set=${set} />`)}</div>
  </main>`;
}

// The HPAs that scale the workload, or by the metric, which a load is named after.
const scalers = (load) =>
  [...rows.values()].filter(
    (row) =>
      !isVertical(row) &&
      (`${row.namespace}/${row.target.split("/")[1]}` === load.title || row.metrics.some((metric) => metric.name.replaceAll('"', "") === load.title)),
  );

// The slider is logarithmic: half and double are as far from 1 as each other; its left end is no load at all.
const toSlider = (factor) => (factor <= 0 ? -4 : Math.min(Math.max(Math.log2(factor), -3.5), 4));
const fromSlider = (value) => (value <= -3.9 ? 0 : Number((2 ** value).toFixed(2)));

function Control({ load, set }) {
  const [value, setValue] = useState(toSlider(load.factor));
  useEffect(() => setValue(toSlider(load.factor)), [load.factor]);
  const factor = fromSlider(value);
  const id = `load-${load.name}`;
  return html`<section class="card load" aria-labelledby=${id}>
    <header class="card-head"><h2 id=${id}>${load.title}</h2><output class="big">× ${factor}</output></header>
    <p class="quiet">${load.detail}</p>
    ${scalers(load).map(
      (row) => html`<p key=${row.id} class="scaler"><a href=${link(row.id)}>${row.name}</a> <${Badge} state=${row.state} />
        <span><${Replicas} row=${row} /> ${row.desired === 1 ? "replica" : "replicas"}</span></p>`,
    )}
    <input type="range" min="-4" max="4" step="0.25" value=${value} aria-labelledby=${id} aria-valuetext=${`${factor} times`}
      onInput=${(event) => setValue(Number(event.target.value))} onChange=${(event) => set(load.name, fromSlider(Number(event.target.value)))} />
    <div class="buttons">${[0, 0.5, 1, 2, 5].map(
      (choice) => html`<button type="button" aria-pressed=${load.factor === choice} onClick=${() => set(load.name, choice)}>${choice === 0 ? "none" : `× ${choice}`}</button>`,
    )}</div>
  </section>`;
}
