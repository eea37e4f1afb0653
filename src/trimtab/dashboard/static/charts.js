// Charts over time, drawn by uPlot with the page's own colours; each has a sentence and a table for those who cannot see it.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { amount, clock, ticksOf } from "./format.js";
import { Scroll } from "./parts.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function useScheme() {
  const [scheme, setScheme] = useState(0);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setScheme((number) => number + 1);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return scheme;
}

const HEIGHT = 220;

function axes(unit) {
  const font = `12px ${colour("--sans")}`;
  const shared = { stroke: colour("--quiet"), font, ticks: { stroke: colour("--line"), size: 4 } };
  const grid = { stroke: colour("--line"), width: 1 };
  return [
    { ...shared, grid: { show: false }, space: 70, values: (_, splits) => times(splits) },
    { ...shared, grid, size: 62, ...binarySplits(unit), values: (_, splits) => splits.map((value) => amount(value, unit)) },
  ];
}

const binarySplits = (unit) => (unit === "bytes" ? { splits: (_chart, _axis, _low, high) => ticksOf(high, unit, 4) } : {});

function times(splits) {
  const withSeconds = splits.length > 1 && splits[1] - splits[0] < 60;
  return splits.map((at) => clock(at, withSeconds));
}

function options(series, unit, extra) {
  return {
    width: 600,
    height: HEIGHT,
    padding: [12, 26, 0, 0],
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    legend: { live: true, markers: { width: 2, fill: (chart, index) => chart.series[index].stroke(chart, index) } },
    scales: { x: { time: true }, y: { range: (_, low, high) => spread(low, high, unit) } },
    axes: axes(unit),
    series: [{ label: "time", value: (_, at) => (at === null ? "–" : clock(at)) }, ...series],
    ...extra,
    hooks: { ...extra.hooks, setCursor: [(chart) => chart.cursor.idx === null && showLast(chart)] },
  };
}

// Without a pointer over it the legend shows the newest numbers.
const showLast = (chart) => chart.setLegend({ idx: chart.data[0].length - 1 });

function spread(low, high, unit) {
  const top = (high || 0) * 1.12;
  return [0, top > 0 ? (unit === "replicas" ? Math.max(top, 2) : top) : 1];
}

const shownAs = (unit) => (_, value) => (value === null || value === undefined ? "–" : amount(value, unit));

function useChart(make, data) {
  const place = useRef(null);
  const chart = useRef(null);
  const scheme = useScheme();
  const shape = data.length;
  useLayoutEffect(() => {
    chart.current = new uPlot(make(), data, place.current);
    showLast(chart.current);
    const fit = () => {
      const width = place.current ? place.current.clientWidth : 0;
      if (width > 0) chart.current.setSize({ width, height: HEIGHT });
    };
    fit();
    const watcher = new ResizeObserver(fit);
    watcher.observe(place.current);
    return () => {
      watcher.disconnect();
      chart.current.destroy();
    };
  }, [scheme, shape]);
  useEffect(() => {
    chart.current.setData(data);
    if (chart.current.cursor.idx === null) showLast(chart.current);
  }, [data[0][data[0].length - 1]]);
  return place;
}

export function ReplicasChart({ track, decision }) {
  const step = uPlot.paths.stepped({ align: 1 });
  const window = useRef(0);
  window.current = decision ? decision.down.windowSeconds : 0;
  const line = (label, name, extra) => ({
    label,
    stroke: colour(name),
    width: 1.5,
    paths: step,
    points: { show: false },
    value: shownAs("replicas"),
    ...extra,
  });
  const make = () =>
    options(
      [
        line("max", "--bound", { dash: [2, 4], width: 1 }),
        line("min", "--bound", { dash: [2, 4], width: 1 }),
        line("asked", "--asked", { dash: [5, 4] }),
        line("current", "--current", { width: 4 }),
        line("decided", "--accent", { width: 2 }),
      ],
      "replicas",
      {
        bands: [{ series: [1, 2], fill: colour("--range") }],
        hooks: { drawClear: [(chart) => shade(chart, window.current)] },
      },
    );
  const place = useChart(make, [track.at, track.high, track.low, track.asked, track.current, track.desired]);
  const last = track.at.length - 1;
  const known = track.current.filter((replicas) => replicas !== null);
  const words =
    !known.length
      ? "No decision yet."
      : `Replicas from ${clock(track.at[0])} to ${clock(track.at[last])}: between ${Math.min(...known)} and ` +
        `${Math.max(...known)}, now ${track.current[last]}, decided ${track.desired[last]}.`;
  return html`<figure class="chart">
    <div ref=${place} role="img" aria-label=${words}></div>
    <${Numbers} head=${["time", "current", "decided", "asked", "min", "max"]}
      rows=${track.at.map((at, i) => [clock(at), track.current[i], track.desired[i], track.asked[i], track.low[i], track.high[i]])} />
  </figure>`;
}

// The part of the time axis that the scale-down window still looks back on.
function shade(chart, seconds) {
  const right = chart.scales.x.max;
  if (!seconds || !right) return;
  const from = chart.valToPos(Math.max(right - seconds, chart.scales.x.min), "x", true);
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.fillStyle = colour("--window");
  ctx.fillRect(from, bbox.top, bbox.left + bbox.width - from, bbox.height);
  ctx.restore();
}

// `of` is what the numbers are an average over, such as pods.
export function MetricChart({ metric, at, name, of }) {
  const line = (label, name, extra) => ({
    label,
    stroke: colour(name),
    width: 1,
    points: { show: false },
    value: shownAs(metric.unit),
    ...extra,
  });
  const make = () =>
    options(
      [
        line("more above", "--band-line", { dash: [3, 3] }),
        line("fewer below", "--band-line", { dash: [3, 3] }),
        line("target", "--target", { width: 1.5, dash: [8, 4] }),
        line(`value${of}`, "--accent", { width: 2, points: { show: metric.value.length < 3 } }),
      ],
      metric.unit,
      { bands: [{ series: [1, 2], fill: colour("--band") }] },
    );
  const place = useChart(make, [at, metric.up, metric.down, metric.target, metric.value]);
  const last = at.length - 1;
  const words = `${name}${of} over time, now ${amount(metric.value[last], metric.unit)}, target ${amount(metric.target[last], metric.unit)}.`;
  return html`<figure class="chart">
    <div ref=${place} role="img" aria-label=${words}></div>
    <${Numbers} head=${["time", `value${of}`, "target", "more above", "fewer below"]}
      rows=${at.map((time, i) => [
        clock(time),
        ...[metric.value[i], metric.target[i], metric.up[i], metric.down[i]].map((value) => amount(value, metric.unit)),
      ])} />
  </figure>`;
}

// The last numbers as a table, drawn only when it is opened.
function Numbers({ head, rows }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details class="numbers" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>Numbers</summary>
    ${isOpen &&
    html`<${Scroll} label="Numbers"><table>
      <thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${rows.slice(-40).reverse().map((row) => html`<tr>${row.map((value) => html`<td>${value ?? "–"}</td>`)}</tr>`)}</tbody>
    </table><//>`}
  </details>`;
}
