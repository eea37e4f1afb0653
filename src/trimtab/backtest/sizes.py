"""Runs the production recommender on recorded usage, one sync after another, in virtual time.

What is simulated is the recommendation. A sample is compared with the target that was recommended before it, which is the
size of a pod that is created at that moment. Evictions and resizes of running pods are not simulated.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from trimtab.backtest.model import Model, ModelError
from trimtab.backtest.trace import Trace
from trimtab.decide.vertical.cluster_state.aggregates import SCALED_RESOURCES, AggregationConfig
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId, PodId
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.input.usage import add_rows
from trimtab.decide.vertical.recommend.plugin_estimates import Estimators, collect_samples
from trimtab.decide.vertical.recommend.recommendation import RecommenderSettings
from trimtab.decide.vertical.recommend.recommender import PostProcessing, recommend_vpas
from trimtab.model.core.pod import CPU
from trimtab.model.labels.selector import Selector
from trimtab.model.readable import readable_amount
from trimtab.model.times import SECOND_NS
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAConditionType

HOUR = 3600.0
MILLI = 1000.0
MAIN = "main"
"""The container of a column that names none."""

LABELS = {"simulated": "true"}
BLOCK_COLUMNS = 64
"""Histograms are few here, so their matrix starts small."""


@dataclass(frozen=True, slots=True)
class SizeCandidate:
    """A VPA to try, and the configuration of the recommender that would run it."""

    name: str
    vpa: VerticalPodAutoscaler
    settings: RecommenderSettings = field(default_factory=RecommenderSettings)
    aggregation: AggregationConfig = field(default_factory=AggregationConfig)
    post_processing: PostProcessing = field(default_factory=PostProcessing)
    compat: VpaCompat = DEFAULT
    per_vpa_config: bool = False
    estimators: Estimators = field(default_factory=dict)
    """The estimator plug-ins that the VPA may name."""


@dataclass(slots=True)
class Size:
    """The recommended target of one resource of a container, and how usage compares with it."""

    target: int | None = None
    """The last target of a pod, in thousandths. None if the VPA recommends nothing."""
    lowest: int | None = None
    """The lowest target, in thousandths."""
    highest: int | None = None
    """The highest target, in thousandths."""
    above_target: float = 0.0
    """Share of the time in which a pod used more than its target."""
    short: float = 0.0
    """Usage of all pods beyond their targets, in unit-hours."""
    idle: float = 0.0
    """Unused part of the targets of all pods, in unit-hours."""


@dataclass(slots=True)
class SizeFigures:
    """The result of one VPA."""

    name: str
    syncs: int = 0
    sizes: dict[str, Size] = field(default_factory=dict)
    """By column of the trace."""
    failed_syncs: int = 0
    """Syncs in which the VPA's estimator gave no usable answer, so that the last target stayed."""
    failure: str = ""
    """What the estimator did wrong first."""

    def rows(self) -> dict[str, str]:
        """Return the figures as text, by their titles."""
        rows: dict[str, str] = {}
        if self.failed_syncs:
            rows["syncs without an estimate"] = f"{self.failed_syncs:,} of {self.syncs:,}"
        for column, size in self.sizes.items():
            if size.target is None or size.lowest is None or size.highest is None:
                rows[f"{column}: target"] = "none"
                continue
            resource = column.rpartition("/")[2]
            lowest, highest = readable_amount(resource, size.lowest), readable_amount(resource, size.highest)
            unit = 1.0 if resource == CPU else 2.0**30
            name = "core" if resource == CPU else "GiB"
            rows[f"{column}: target"] = readable_amount(resource, size.target)
            rows[f"{column}: lowest and highest target"] = f"{lowest} - {highest}"
            rows[f"{column}: time above target"] = f"{size.above_target:.1%}"
            rows[f"{column}: short of target"] = f"{size.short / unit:,.1f} {name}-hours"
            rows[f"{column}: unused of target"] = f"{size.idle / unit:,.1f} {name}-hours"
        return rows


@dataclass(slots=True)
class SizeResults:
    """The figures of a VPA, and its targets at each change."""

    figures: SizeFigures
    targets: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """The times and targets of each column, in thousandths."""


def run_sizes(candidate: SizeCandidate, trace: Trace, model: Model) -> Iterator[tuple[float, SizeResults]]:
    """Run a VPA. Yield the share done and the results so far.

    The last results are complete. Raise ModelError if the trace has no column of a container's usage.
    """
    columns = usage_columns(trace)
    recommender = _SimulatedRecommender(candidate, columns, 1 if model.replicas is None else model.replicas)
    result = SizeResults(
        SizeFigures(candidate.name, sizes={column: Size() for column in columns}),
        {column: [] for column in columns},
    )
    measured = dict.fromkeys(columns, 0)
    period = model.sync_period
    syncs = int((trace.end - trace.start) // period) + 1
    for number in range(syncs):
        at = trace.start + number * period
        used = {column: trace.at(column, at) for column in columns}
        for column, amount in used.items():
            measured[column] += _compare(result.figures.sizes[column], amount, recommender.pods, period)
        _keep(result, recommender.sync(used, at), at)
        result.figures.syncs += 1
        if recommender.failure:
            result.figures.failed_syncs += 1
            result.figures.failure = result.figures.failure or recommender.failure
        if result.figures.syncs % 100 == 0:
            yield number / syncs, result
    for column, size in result.figures.sizes.items():
        size.above_target /= max(measured[column], 1)
    yield 1.0, result


def usage_columns(trace: Trace) -> dict[str, tuple[str, str]]:
    """Return the container and the resource of each column that has usage, or raise ModelError."""
    found: dict[str, tuple[str, str]] = {}
    for column in trace.columns:
        container, _, resource = column.rpartition("/")
        if resource in SCALED_RESOURCES:
            found[column] = (container or MAIN, resource)
    if len(set(found.values())) < len(found) or not found:
        raise ModelError(
            "the trace of a VPA needs columns such as cpu and memory, or CONTAINER/cpu and CONTAINER/memory, each once; "
            f"its columns are {', '.join(trace.columns)}"
        )
    return found


def _compare(size: Size, load: int | None, pods: int, period: float) -> bool:
    """Compare the load of all pods with the target they have. Return whether there is something to compare."""
    if load is None or size.target is None:
        return False
    room = size.target * pods - load
    amount = abs(room) / MILLI * period / HOUR
    if room < 0:
        size.above_target += 1
        size.short += amount
    else:
        size.idle += amount
    return True


def _keep(result: SizeResults, targets: Mapping[str, int], at: float) -> None:
    for column, target in targets.items():
        size, changes = result.figures.sizes[column], result.targets[column]
        size.target = target
        size.lowest = target if size.lowest is None else min(size.lowest, target)
        size.highest = target if size.highest is None else max(size.highest, target)
        if not changes or changes[-1][1] != target:
            changes.append((at, target))


class _SimulatedRecommender:
    """The cluster state of one VPA and its pods, which share the load evenly."""

    def __init__(self, candidate: SizeCandidate, columns: Mapping[str, tuple[str, str]], pods: int) -> None:
        if pods < 1:
            raise ModelError(f"{candidate.name}: a VPA needs pods: set replicas to 1 or more")
        self.pods = pods
        self._candidate = candidate
        self._columns = columns
        self._containers = sorted({container for container, _ in columns.values()})
        self._state = ClusterState(
            candidate.aggregation,
            candidate.compat,
            per_vpa_config=candidate.per_vpa_config,
            block_columns=BLOCK_COLUMNS,
        )
        selector = ",".join(f"{name}={value}" for name, value in LABELS.items())
        self._vpa = self._state.add_or_update_vpa(candidate.vpa, Selector.parse(selector))
        self._rows: dict[str, list[int]] = {}
        self.failure = ""
        """Why the estimator gave no usable answer in the last sync."""

    def sync(self, used: Mapping[str, int | None], at: float) -> dict[str, int]:
        """Add a sample of each pod and return the targets, by column, in thousandths."""
        now_ns = int(at * SECOND_NS)
        if not self._rows:
            self._create_pods(now_ns)
        for column, (container, resource) in self._columns.items():
            load = used[column]
            if load is not None:
                amount = load // self.pods // (1 if resource == CPU else 1000)
                rows = np.array(self._rows[container], dtype=np.int64)
                usage = UsageRows(rows, np.full_like(rows, amount), np.full_like(rows, now_ns))
                intake = add_rows(self._state, resource, usage, None, now_ns)
                collect_samples(self._state, self._candidate.estimators, resource, intake.usage)
        return self._recommend(now_ns)

    def _create_pods(self, now_ns: int) -> None:
        namespace = self._candidate.vpa.metadata.namespace
        for number in range(self.pods):
            pod = PodId(namespace, f"simulated-{number}")
            self._state.add_or_update_pod(pod, LABELS, "Running", now_ns)
            for container in self._containers:
                self._state.add_or_update_container(ContainerId(pod, container), 0, 0, now_ns)
                row = self._state.rows[ContainerId(pod, container)]
                self._rows.setdefault(container, []).append(row)

    def _recommend(self, now_ns: int) -> dict[str, int]:
        candidate = self._candidate
        (recommended,) = recommend_vpas(
            self._state,
            [self._vpa],
            candidate.settings,
            candidate.post_processing,
            now_ns,
            candidate.estimators,
        )
        failed = recommended.status.condition(VPAConditionType.ESTIMATOR_FAILED)
        self.failure = failed.message if failed is not None else ""
        recommendation = recommended.status.recommendation
        targets = {
            (container.container_name, resource): quantity.milli_value()
            for container in (recommendation.container_recommendations if recommendation else ())
            for resource, quantity in container.target.items()
        }
        return {column: targets[key] for column, key in self._columns.items() if key in targets}
