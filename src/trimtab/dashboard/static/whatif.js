// What if: the last observation with other numbers, through the very decision that runs in production. Nothing is written.
import { binaryUnit } from "./format.js";
import { html, useEffect, useMemo, useRef, useState } from "./lib.js";
import { post } from "./api.js";
import { Badge, Copyable, Words } from "./parts.js";
import { Ruler } from "./ruler.js";

const POLICIES = { scaleUp: [["Pods", 4, 15], ["Percent", 100, 15]], scaleDown: [["Percent", 100, 15]] };

function rulesOf(spec, decision, direction) {
  const rules = (spec.behavior && spec.behavior[direction]) || {};
  const isUp = direction === "scaleUp";
  const listed = rules.policies && rules.policies.map((policy) => [policy.type, policy.value, policy.periodSeconds]);
  return {
    window: rules.stabilizationWindowSeconds ?? (isUp ? 0 : decision.down.windowSeconds),
    select: rules.selectPolicy || "Max",
    tolerance: Number(((isUp ? decision.toleranceUp : decision.toleranceDown) * 100).toFixed(3)),
    policies: listed || POLICIES[direction],
  };
}

function startOf(page) {
  const { spec, decision } = page;
  return {
    low: decision.low,
    high: decision.high,
    replicas: decision.current,
    forgets: false,
    strategy: spec.selectionStrategy || "LabelSelector",
    scaleUp: rulesOf(spec, decision, "scaleUp"),
    scaleDown: rulesOf(spec, decision, "scaleDown"),
    metrics: decision.metrics.map((metric) => metric.value),
  };
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Only what differs is sent: the rest stays as it is, and an HPA without `behavior` keeps to the rules it has.
function editsOf(form, start, spec) {
  const edits = {};
  if (form.low !== start.low) edits.minReplicas = form.low;
  if (form.high !== start.high) edits.maxReplicas = form.high;
  if (form.replicas !== start.replicas) edits.replicas = form.replicas;
  if (form.strategy !== start.strategy) edits.selectionStrategy = form.strategy;
  if (form.forgets) edits.forgets = true;
  for (const direction of ["scaleUp", "scaleDown"]) {
    const changes = changedRules(form[direction], start[direction]);
    if (Object.keys(changes).length)
      edits.behavior = { ...(edits.behavior || spec.behavior), [direction]: { ...(spec.behavior || {})[direction], ...changes } };
  }
  const metrics = form.metrics
    .map((value, index) => ({ index, value }))
    .filter(({ index, value }) => value !== null && value !== start.metrics[index]);
  if (metrics.length) edits.metrics = metrics;
  return edits;
}

// The fields of one direction that differ, as the spec has them. The API server adds the defaults of the others.
function changedRules(rules, start) {
  const changes = {};
  if (rules.window !== start.window) changes.stabilizationWindowSeconds = rules.window;
  if (rules.select !== start.select) changes.selectPolicy = rules.select;
  if (rules.tolerance !== start.tolerance) changes.tolerance = String(Number((rules.tolerance / 100).toFixed(6)));
  if (!same(rules.policies, start.policies))
    changes.policies = rules.policies.map(([type, value, periodSeconds]) => ({ type, value, periodSeconds }));
  return changes;
}

export function WhatIf({ page }) {
  const id = page.row.id;
  // The form starts from the decision at hand when it is first touched, and does not move while it is edited.
  const [base, setBase] = useState(page);
  const [form, setForm] = useState(() => startOf(page));
  const start = useMemo(() => startOf(base), [base]);
  const edits = useMemo(() => editsOf(form, start, base.spec), [form, start]);
  const isTouched = Object.keys(edits).length > 0;
  useEffect(() => {
    if (isTouched) return;
    setBase(page);
    setForm(startOf(page));
  }, [page]);
  const [answer, problem] = useAnswer(id, edits, isTouched, page);
  const change = (fields) => setForm((before) => ({ ...before, ...fields }));
  return html`<div class="whatif">
    <form class="whatif-form" onSubmit=${(event) => event.preventDefault()} aria-label="What if">
      ${base.decision.metrics.map(
        (metric, index) =>
          metric.value !== null &&
          html`<${MetricSlider} key=${index} metric=${metric} value=${form.metrics[index]}
            change=${(value) => change({ metrics: form.metrics.map((old, place) => (place === index ? value : old)) })} />`,
      )}
      <div class="fields">
        <${Numeric} label="replicas now" value=${form.replicas} change=${(replicas) => change({ replicas })} />
        <${Numeric} label="minReplicas" value=${form.low} change=${(low) => change({ low })} />
        <${Numeric} label="maxReplicas" value=${form.high} change=${(high) => change({ high })} />
        <label class="field"><span>pods counted by</span>
          <select value=${form.strategy} onChange=${(event) => change({ strategy: event.target.value })}>
            <option>LabelSelector</option><option disabled=${Boolean(page.ownersUnknown) && form.strategy !== "OwnerReference"}>OwnerReference</option>
          </select></label>
      </div>
      <div class="two">
        <${Rules} title="Scale up" rules=${form.scaleUp} change=${(scaleUp) => change({ scaleUp })} />
        <${Rules} title="Scale down" rules=${form.scaleDown} change=${(scaleDown) => change({ scaleDown })} />
      </div>
      <label class="check"><input type="checkbox" checked=${form.forgets} onChange=${(event) => change({ forgets: event.target.checked })} />
        forget earlier recommendations (as if all windows had passed)</label>
      ${page.ownersUnknown && html`<p class="quiet">OwnerReference cannot be tried: ${page.ownersUnknown}.</p>`}
      ${!page.honoursTolerance && html`<p class="quiet">The gate HPAConfigurableTolerance is off: an own tolerance has no effect.</p>`}
      <p><button type="button" disabled=${!isTouched} onClick=${() => (setBase(page), setForm(startOf(page)))}>Reset</button></p>
    </form>
    <div class="whatif-answer" aria-live="polite">
      ${problem
        ? html`<p class="alarm">${problem}</p>`
        : !isTouched
          ? html`<p class="quiet">Move a slider or change a number: the decision is made again on the last observation,
              at its own moment. Nothing is written to the cluster.</p>`
          : answer && html`<${Answer} decision=${answer.decision} patch=${answer.patch} before=${base.decision} />`}
    </div>
  </div>`;
}

function useAnswer(id, edits, isTouched, page) {
  const [answer, setAnswer] = useState(null);
  const [problem, setProblem] = useState("");
  const newest = useRef(0);
  useEffect(() => {
    if (!isTouched) return setAnswer(null), setProblem("");
    const turn = (newest.current += 1);
    const timer = setTimeout(() => {
      post("/api/whatif", { id, edits }).then(
        (found) => turn === newest.current && (setAnswer(found), setProblem("")),
        (error) => turn === newest.current && setProblem(error.message),
      );
    }, 120);
    return () => clearTimeout(timer);
  }, [id, edits, isTouched, page.row.at]);
  return [answer, problem];
}

const Answer = ({ decision, patch, before }) =>
  html`<p class="answer"><${Badge} state=${decision.state} /> <b class="big">${decision.desired}</b>
      <span class="quiet">${decision.desired === before.desired ? "as decided" : `instead of ${before.desired}`}</span></p>
    <p class="summary"><${Words} text=${decision.summary} /></p>
    ${decision.ignored.map((text) => html`<p class="note">Ignored: ${text}</p>`)}
    <${Ruler} decision=${decision} before=${before} />
    <dl class="whys-list"><dt>Why not more?</dt><dd><${Words} text=${decision.more} /></dd><dt>Why not fewer?</dt><dd><${Words} text=${decision.less} /></dd></dl>
    ${patch
      ? html`<h3>To make it so</h3><${Copyable} text=${patch} label="The edits as a patch" />`
      : html`<p class="quiet">Only the load was changed, so there is nothing to apply to the HPA.</p>`}`;

// Bytes are typed in the unit of the target: 256 MiB and not 268435456.
function MetricSlider({ metric, value, change }) {
  const { name, size } = metric.unit === "bytes" ? binaryUnit(metric.target || metric.value) : { name: metric.unit, size: 1 };
  const top = Math.max(metric.target * 3, metric.value * 1.5, 1) / size;
  const step = metric.unit === "%" ? 1 : 10 ** Math.floor(Math.log10(top / 200));
  const round = (number) => (metric.unit === "%" ? Math.round(number) : Number(number.toPrecision(6)));
  const typed = (event) => event.target.value !== "" && change(round(Number(event.target.value)) * size);
  const shown = round(value / size);
  return html`<div class="slider">
    <label><span>${metric.label} <span class="quiet">target ${metric.targetText}</span></span>
      <input type="range" min="0" max=${top} step=${step} value=${shown} onInput=${typed}
        aria-valuetext=${`${shown} ${name}`} /></label>
    <input type="number" class="exact" min="0" step="any" value=${shown} onInput=${typed} aria-label=${`${metric.label}, exact value`} />
    <span class="unit">${name}${metric.isPerPod ? " per pod" : ""}</span>
  </div>`;
}

const Numeric = ({ label, value, change, step = 1 }) =>
  html`<label class="field"><span>${label}</span>
    <input type="number" min="0" step=${step} value=${value}
      onInput=${(event) => event.target.value !== "" && change(Number(event.target.value))} /></label>`;

function Rules({ title, rules, change }) {
  const set = (fields) => change({ ...rules, ...fields });
  const policy = (place, part, value) =>
    set({ policies: rules.policies.map((old, index) => (index === place ? old.map((field, at) => (at === part ? value : field)) : old)) });
  return html`<fieldset><legend>${title}</legend>
    <div class="fields">
      <${Numeric} label="tolerance %" step="any" value=${rules.tolerance} change=${(tolerance) => set({ tolerance })} />
      <${Numeric} label="window s" value=${rules.window} change=${(window) => set({ window })} />
      <label class="field"><span>policies</span>
        <select value=${rules.select} onChange=${(event) => set({ select: event.target.value })}>
          <option>Max</option><option>Min</option><option>Disabled</option>
        </select></label>
    </div>
    ${rules.policies.map(
      ([type, value, period], place) => html`<div class="policy" key=${place}>
        <input type="number" min="1" value=${value} aria-label="how much" onInput=${(event) => event.target.value !== "" && policy(place, 1, Number(event.target.value))} />
        <select value=${type} aria-label="of what" onChange=${(event) => policy(place, 0, event.target.value)}>
          <option value="Pods">pods</option><option value="Percent">%</option>
        </select>
        <span>per</span>
        <input type="number" min="1" max="1800" value=${period} aria-label="period in seconds" onInput=${(event) => event.target.value !== "" && policy(place, 2, Number(event.target.value))} />
        <span>s</span>
        <button type="button" class="small" aria-label="Remove this policy" disabled=${rules.policies.length < 2}
          onClick=${() => set({ policies: rules.policies.filter((_, index) => index !== place) })}>×</button>
      </div>`,
    )}
    <button type="button" class="small" onClick=${() => set({ policies: [...rules.policies, ["Pods", 1, 60]] })}>Add a policy</button>
  </fieldset>`;
}
