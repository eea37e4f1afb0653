// One HPA: the decision on a ruler, why not more or less, its metrics, its past, its pods, and the what-if.
import { html, useEffect, useState } from "./lib.js";
import { get } from "./api.js";
import { amount, duration, many } from "./format.js";
import { Back, Badge, Card, Conditions, Empty, Hidden, Scroll, Time, Title, Words } from "./parts.js";
import { onRows } from "./stream.js";
import { Gauge, Ruler, outside } from "./ruler.js";
import { MetricChart, ReplicasChart } from "./charts.js";
import { WhatIf } from "./whatif.js";

// Reads a page again whenever its row changes; `seconds` reads it from time to time besides, for what no row tells.
// While the program does not answer, the page stays as it was.
export function usePage(path, id, seconds = 0) {
  const [page, setPage] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isHere = true;
    const load = () =>
      get(`${path}?id=${encodeURIComponent(id)}`).then(
        (found) => isHere && (setPage(found), setProblem("")),
        (error) => isHere && (error.status === 404 && setPage(null), setProblem(error.message)),
      );
    load();
    const stop = onRows((changed) => changed.has(id) && load());
    const timer = seconds && setInterval(load, seconds * 1000);
    return () => {
      isHere = false;
      clearInterval(timer);
      stop();
    };
  }, [path, id]);
  return [page, problem];
}

// What stands in for a page that is not there yet, or not at all.
export const Without = ({ id, problem }) =>
  html`<main id="main" tabindex="-1"><${Back} />
    ${problem
      ? html`<${Title}>${id.split("/").pop()}<//><${Empty}>${problem}<//>`
      : html`<p class="quiet" role="status">Loading …</p>`}</main>`;

export function HorizontalPage({ id }) {
  const [page, problem] = usePage("/api/hpa", id);
  if (!page) return html`<${Without} id=${id} problem=${problem} />`;
  const { row, decision } = page;
  return html`<main id="main" tabindex="-1">
    <${Back} />
    <div class="page-head">
      <div><${Title}>${row.name}<//>
        <p class="quiet">${row.namespace} · scales ${row.target}${row.id.startsWith("native/") ? " · native autoscaling/v2" : ""}</p></div>
      <div class="head-state">${decision && decision.current !== null && html`<button type="button" class="small" onClick=${toWhatIf}>What if …</button>`}<${Badge} state=${row.state} />${row.isDryRun && html`<span class="tag">dry run</span>`}
        <span class="quiet">decided <${Time} at=${row.at} /></span></div>
    </div>
    <${Hidden} parts=${page.hidden} />
    ${page.problem && html`<p class="alarm" role="alert">The spec cannot be decided on: ${page.problem}</p>`}
    ${page.notice && html`<p class="note" role="status"><${Words} text=${page.notice} /></p>
      <${Card} id="conditions" title="Conditions, from the operator" wide><${Conditions} conditions=${page.conditions} /><//>`}
    ${decision && decision.current === null ? html`<${Unread} page=${page} />` : decision ? html`<${Decided} page=${page} />` : !page.notice && html`<${Empty}>No decision has been made yet. The first one follows the first sample, within half a minute.<//>`}
  </main>`;
}

function toWhatIf() {
  const title = document.getElementById("whatif");
  title.scrollIntoView({ block: "start" });
  title.closest("section").querySelector("input, select").focus({ preventScroll: true });
}

// A decision without its target: there are no numbers to draw, only why, and what to do.
const Unread = ({ page }) =>
  html`<div class="grid">
    <${Card} id="decision" title="Decision" wide>
      <p class="summary"><${Words} text=${page.decision.summary} /></p>
      <p class="quiet">Its replicas are unknown. What to do: <${Words} text=${page.decision.nextStep} />.</p>
    <//>
    ${page.showsEvents && html`<${Card} id="events" title="Events"><${Events} events=${page.events} /><//>`}
    <${Card} id="conditions" title="Conditions" wide=${!page.showsEvents}><${Conditions} conditions=${page.conditions} /><//>
  </div>`;

const Decided = ({ page }) => {
  const { decision, track } = page;
  return html`<div class="grid">
    <${Card} id="decision" title="Decision" wide>
      <p class="summary"><${Words} text=${decision.summary} /></p>
      ${(decision.policies || []).map((text) => html`<p class="note">Policy: ${text}</p>`)}
      ${decision.ignored.map((text) => html`<p class="note">Ignored: ${text}</p>`)}
      <${Ruler} decision=${decision} />
      <div class="whys">
        <div><h3>Why not more?</h3><p><${Words} text=${decision.more} /></p></div>
        <div><h3>Why not fewer?</h3><p><${Words} text=${decision.less} /></p></div>
      </div>
    <//>
    <${Card} id="replicas" title="Replicas" wide aside=${html`<span class="quiet">shaded: scale-down window of ${duration(decision.down.windowSeconds)}</span>`}>
      <${ReplicasChart} track=${track} decision=${decision} />
    <//>
    ${decision.metrics.map(
      (metric, index) => html`<${Metric} key=${index} metric=${metric} index=${index} track=${track} only=${decision.metrics.length === 1} decision=${decision} />`,
    )}
    <${Limits} decision=${decision} wide=${!page.showsEvents} />
    ${page.showsEvents &&
    html`<${Card} id="events" title="Events" aside=${html`<span class="quiet">${page.events.length || "none"}</span>`}>
      ${page.events.length ? html`<${Events} events=${page.events} />` : html`<${Empty}>None since the dashboard started.<//>`}
    <//>`}
    <${Card} id="whatif" title="What if …" wide>
      <${WhatIf} page=${page} />
    <//>
    ${page.showsPods && html`<${Pods} page=${page} />`}
    <${Card} id="conditions" title="Conditions" wide><${Conditions} conditions=${page.conditions} /><//>
  </div>`;
};

function Metric({ metric, index, track, only, decision }) {
  const past = track.metrics[index];
  const aside = metric.isWinner && decision.metrics.length > 1 ? html`<span class="tag">asks for most</span>` : null;
  if (metric.problem)
    return html`<${Card} id=${`metric-${index}`} title=${metric.label} wide=${only} aside=${aside}>
      <p class="alarm">${metric.problem}</p>
      ${metric.fallback && html`<p class="fallback">While it is lost: <${Words} text=${metric.fallback} />.</p>`}
    <//>`;
  const edges = [metric.upText && `more above ${metric.upText}`, metric.downText && `fewer ${metric.downText}`].filter(Boolean);
  const words = `${metric.valueText}, target ${metric.targetText}${edges.length ? `; asks for ${edges.join(", ")}` : ""}`;
  return html`<${Card} id=${`metric-${index}`} title=${metric.label} wide=${only} aside=${aside}>
    <p class="quiet full-name">${metric.name}</p>
    <dl class="facts">
      <div><dt>now</dt><dd class=${outside(metric) ? "out" : ""}>${metric.valueText}</dd></div>
      <div><dt>target</dt><dd>${metric.targetText}</dd></div>
      ${metric.perPodText && html`<div><dt>per pod</dt><dd>${metric.perPodText}</dd></div>`}
      ${metric.totalText && html`<div><dt>in all</dt><dd>${metric.totalText}</dd></div>`}
      ${metric.upText && html`<div><dt>more above</dt><dd>${metric.upText}</dd></div>`}
      ${metric.downText && html`<div><dt>fewer</dt><dd>${metric.downText}</dd></div>`}
      <div><dt>asks for</dt><dd>${metric.replicas}</dd></div>
    </dl>
    <${Gauge} metric=${metric} text=${words} />
    ${past && html`<${MetricChart} metric=${past} at=${track.at} name=${metric.label} of=${metric.isPerPod ? " per pod" : ""} />`}
    ${metric.notes.length > 0 && html`<ul class="notes">${metric.notes.map((note) => html`<li>${note}</li>`)}</ul>`}
  <//>`;
}

const Limits = ({ decision, wide }) =>
  html`<${Card} id="limits" title="Windows and limits" wide=${wide}>
    <div class="two">
      <${Direction} title="Up" rules=${decision.up} tolerance=${decision.toleranceUp} now=${`to at most ${decision.up.allowed} now`} />
      <${Direction} title="Down" rules=${decision.down} tolerance=${decision.toleranceDown} now=${`to at least ${decision.down.allowed} now`} />
    </div>
    ${decision.window.length > 0 &&
    html`<h3>Remembered recommendations</h3>
      <ol class="window">${decision.window.slice(-12).map(([at, replicas]) => html`<li><b>${replicas}</b> <${Time} at=${at} /></li>`)}</ol>`}
  <//>`;

const Direction = ({ title, rules, tolerance, now }) =>
  html`<div><h3>${title}</h3><ul class="plain">
    <li>tolerance ${amount(tolerance * 100, "%")}</li>
    <li>window ${duration(rules.windowSeconds)}</li>
    ${rules.select === "Disabled"
      ? html`<li>disabled</li>`
      : rules.policies.map((policy) => html`<li>${policy}</li>`)}
    ${rules.policies.length > 1 && html`<li class="quiet">${rules.select === "Min" ? "the strictest counts" : "the most generous counts"}</li>`}
    <li><b>${now}</b></li>
  </ul></div>`;

function Pods({ page }) {
  const { pods, decision } = page;
  const aside = decision.counted != null && html`<span class="quiet">${many(decision.counted, "pod")} counted by ${decision.fallback ? "labels" : decision.strategy}${decision.leftOut ? `, ${decision.leftOut} left out` : ""}</span>`;
  const columns = decision.metrics.map((metric, index) => [metric.label, index]).filter(([, index]) => pods.some((pod) => pod.samples[index]));
  return html`<${Card} id="pods" title="Pods" wide aside=${aside}>
    ${decision.extra > 0 && html`<p class="note">${many(decision.counted, "pod")} are counted by their labels; ${decision.extra} more than the target has. OwnerReference would count only the target's own.</p>`}
    ${decision.fallback && html`<p class="alarm">All pods that match count, because ${decision.strategy} cannot be applied: ${decision.fallback}</p>`}
    ${pods.length
      ? html`<${Scroll} label="Pods" tall><table class="pods">
          <thead><tr><th scope="col">Pod</th><th scope="col">Phase</th><th scope="col">Counts</th>
            ${columns.map(([name]) => html`<th scope="col" class="number">${name}</th>`)}</tr></thead>
          <tbody>${pods.map(
            (pod) => html`<tr key=${pod.name} class=${pod.isForeign ? "foreign" : pod.isCounted ? "" : "left-out"}>
              <td class="pod">${pod.name}</td>
              <td data-label="Phase">${pod.phase}${pod.phase === "Running" && !pod.isReady ? ", not ready" : ""}</td>
              <td data-label="Counts"><span>${pod.isForeign ? html`<b>yes, not its own</b>` : pod.isCounted ? "yes" : html`<b>left out</b>`}${pod.reason ? html`<span class="quiet"> – ${pod.reason}</span>` : ""}</span></td>
              ${columns.map(([name, index]) => html`<td class="number" data-label=${name}>${pod.samples[index] || "–"}</td>`)}
            </tr>`,
          )}</tbody></table><//>`
      : html`<${Empty}>No pod has the target's labels.<//>`}
    ${page.podsTotal > pods.length && html`<p class="quiet">${page.podsTotal - pods.length} more are not listed.</p>`}
  <//>`;
}

export const Events = ({ events }) =>
  html`<ul class="events" tabindex="0" aria-label="Events">
    ${events.map(
      (event, index) => html`<li key=${`${event.at}-${index}`} class=${event.type === "Warning" ? "warning" : ""}>
        <${Time} at=${event.at} /> <b>${event.reason}</b> ${event.pod && html`<span class="pod">${event.pod}:</span> `}<span>${event.message}</span>
      </li>`,
    )}
  </ul>`;
