"""Plays VPAs on recorded usage: their pods are created, resized, evicted and killed as they would have been."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trimtab.library.progress import OnProgress
from trimtab.library.simulator.hpa_runs import Candidate, HpaLoop, SyncStep
from trimtab.library.simulator.life import Life, Outcomes
from trimtab.library.simulator.load import RecordedLoad, UsageColumn, usage_columns
from trimtab.library.simulator.model import Model, ModelError, model_metrics
from trimtab.library.simulator.results import (
    Results,
    first_replicas,
    new_results,
    run_with_progress,
    workload_of,
)
from trimtab.library.simulator.workload import SimulatedNode, Workload
from trimtab.library.trace import Trace, with_totals
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.quantity import Quantity
from trimtab.model.readable import readable_amount
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAConditionType, VPAScope
from trimtab.operator.settings.settings import Settings

if TYPE_CHECKING:
    from trimtab.decide.vertical.recommend.plugin_estimates import Estimators

UNITS = {CPU: (1.0, "core"), MEMORY: (2.0**30, "GiB")}
AMOUNTS = ("requested", "used", "wasted", "starved")
"""The resource-hours of outcomes."""
ROOM = (10**9, 2**60)
"""Millicores and bytes of a node on which a DaemonSet has a pod."""

WAITING_PERIOD = 60.0
"""Seconds between two measurements for a recommender, as metrics-server measures."""


@dataclass(frozen=True, slots=True)
class SizeCandidate:
    """VPAs of one workload to try, their scopes, an HPA beside them, and the settings of the programs that would run them."""

    name: str
    vpas: tuple[VerticalPodAutoscaler, ...]
    settings: Settings
    scopes: tuple[VPAScope, ...] = ()
    hpa: Candidate | None = None
    estimators: "Estimators" = field(default_factory=dict)
    """The estimator plug-ins that the VPAs may name."""


@dataclass(slots=True)
class Size:
    """The recommended target of one resource of a container, in thousandths."""

    target: int | None = None
    """The last target. None if nothing is recommended."""
    lowest: int | None = None
    highest: int | None = None

    def recommend(self, target: int) -> None:
        self.target = target
        self.lowest = target if self.lowest is None else min(self.lowest, target)
        self.highest = target if self.highest is None else max(self.highest, target)


@dataclass(slots=True)
class SizeFigures:
    """The result of the VPAs of one workload."""

    name: str
    syncs: int = 0
    """Loops of the recommender."""
    sizes: dict[str, Size] = field(default_factory=dict)
    """By `cpu`, of several containers by `CONTAINER/cpu`, of several VPAs by `VPA cpu`."""
    outcomes: Outcomes = field(default_factory=Outcomes)
    cost: float | None = None
    """The price of what was requested. None without prices."""
    failed_syncs: int = 0
    """Loops in which an estimator gave no usable answer, so that the last target stayed."""
    failure: str = ""
    """What the estimator did wrong first."""
    unchanged: dict[str, str] = field(default_factory=dict)
    """Why pods stayed as they were at the end, by pod, if they request less than they use."""

    def rows(self) -> dict[str, str]:
        """Return the figures as text, by their titles."""
        outcomes, rows = self.outcomes, dict[str, str]()
        if self.failed_syncs:
            rows["syncs without an estimate"] = f"{self.failed_syncs:,} of {self.syncs:,}"
        for resource in dict.fromkeys(map(_resource_of, self.sizes)):
            unit, name = UNITS[resource]
            for what in AMOUNTS:
                amount = getattr(outcomes, what)[resource] / unit
                rows[f"{resource}: {what}"] = f"{amount:,.1f} {name}-hours"
        for role, minutes in sorted(outcomes.starved_minutes.items()):
            rows[f"starved{' as ' + role if role else ''}"] = f"{minutes:,.1f} pod-minutes"
        for role, minutes in sorted(outcomes.unsized_minutes.items()):
            if minutes:
                rows[f"without the size of {role}"] = f"{minutes:,.1f} minutes"
        rows |= {
            "OOM kills": f"{outcomes.oom_kills:,}",
            "throttled": f"{outcomes.throttled_minutes:,.1f} pod-minutes",
            "resizes, evictions": f"{outcomes.resizes:,}, {outcomes.evictions:,}",
            "unavailable": f"{outcomes.unavailable_pod_minutes:,.1f} pod-minutes",
        }
        if self.cost is not None:
            rows["cost"] = f"{self.cost:,.2f}"
        for title, size in self.sizes.items():
            rows[f"{title}: target"] = _range(_resource_of(title), size)
        return rows


def _resource_of(title: str) -> str:
    return CPU if title.endswith(CPU) else MEMORY


def _range(resource: str, size: Size) -> str:
    """Return the last target, and the lowest and the highest if they differ."""
    if size.target is None or size.lowest is None or size.highest is None:
        return "none"
    target, lowest, highest = (
        readable_amount(resource, amount) for amount in (size.target, size.lowest, size.highest)
    )
    return target if lowest == highest else f"{target} ({lowest} - {highest})"


@dataclass(slots=True)
class SizeResults:
    """The figures of a candidate, and what it did over time."""

    figures: SizeFigures
    life: Life
    targets: dict[str, list[tuple[float, int]]]
    """The times and targets of each size, in thousandths."""
    hpa: Results | None = None
    """Of the HPA beside the VPAs."""

    @property
    def name(self) -> str:
        return self.figures.name

    def rows(self) -> dict[str, str]:
        """Return the figures as text, by their titles, those of the HPA first."""
        return ({} if self.hpa is None else self.hpa.rows()) | self.figures.rows()

    def uses(self, resource: str) -> bool:
        """Return whether the trace has usage of a resource."""
        return resource in map(_resource_of, self.figures.sizes)

    def add(
        self, written: Sequence[VerticalPodAutoscaler], titles: Mapping[tuple[str, str, str], str]
    ) -> None:
        """Add a loop of the recommender, with the VPAs of which it wrote the status."""
        figures, vpas = self.figures, self.life.vpas.values()
        figures.syncs += 1
        for condition in (vpa.status.condition(VPAConditionType.ESTIMATOR_FAILED) for vpa in vpas):
            if condition is not None:
                figures.failed_syncs += 1
                figures.failure = figures.failure or condition.message
                break
        for vpa in written:
            recommendation = vpa.status.recommendation
            for entry in recommendation.container_recommendations if recommendation else ():
                for resource, quantity in entry.target.items():
                    if (title := titles.get((vpa.key, entry.container_name, resource))) is not None:
                        target, changes = quantity.milli_value(), self.targets[title]
                        figures.sizes[title].recommend(target)
                        if not changes or changes[-1][1] != target:
                            changes.append((self.life.now, target))


AnyCandidate = Candidate | SizeCandidate
AnyResults = Results | SizeResults


def play(
    candidates: Sequence[AnyCandidate], trace: Trace, model: Model, on_progress: OnProgress
) -> list[AnyResults]:
    """Run candidates in turn. Report the name of each and the share of the whole that is done."""
    results: dict[int, AnyResults] = {}
    for number, candidate in enumerate(candidates):
        run: Iterator[tuple[float, AnyResults]]
        if isinstance(candidate, Candidate):
            run = run_with_progress(candidate, trace, model)
        else:
            run = run_sizes(candidate, trace, model)
        for share, results[number] in run:
            on_progress(candidate.name, (number + share) / len(candidates))
    return list(results.values())


def run_sizes(candidate: SizeCandidate, trace: Trace, model: Model) -> Iterator[tuple[float, SizeResults]]:
    """Run VPAs. Yield the share done and the results so far.

    The last results are complete. Raise ModelError if the trace has no column of a container's usage.
    """
    columns = _checked_columns(trace)
    hpa, totals = candidate.hpa, with_totals(trace)
    metrics = model_metrics(hpa.hpa, totals, model) if hpa is not None else ()
    if hpa is not None and (model.replicas is not None or not any(column.pod for column in columns)):
        replicas = first_replicas(hpa, metrics, totals, model)
    elif model.replicas == 0:
        raise ModelError(f"{candidate.name}: a VPA needs pods: set replicas to 1 or more")
    else:
        replicas = model.replicas or len({column.pod for column in columns})
    workload = _workload(candidate, columns, replicas, model, trace.start)
    keys = {column.partition("/label/")[2] for column in trace.labels}
    life = Life(
        workload,
        RecordedLoad(trace, workload),
        candidate.settings,
        start=trace.start,
        vpas=candidate.vpas,
        scopes=candidate.scopes,
        metrics_period=max(model.metrics_period, WAITING_PERIOD),
        metrics_delay=model.metrics_delay,
        role_label=min(keys, default="role"),
        estimators=candidate.estimators,
    )
    titles = _titles(candidate, columns)
    figures = SizeFigures(candidate.name, sizes={title: Size() for title in titles.values()})
    figures.outcomes = life.outcomes
    result = SizeResults(figures, life, {title: [] for title in titles.values()})
    life.on_recommend = lambda written: result.add(written, titles)
    if hpa is not None:
        beside = result.hpa = new_results(hpa, metrics)

        def add(step: SyncStep) -> None:
            # A utilization is of what the pods request now.
            now = model_metrics(hpa.hpa, totals, replace(model, requests=_requests_of(workload, model)))
            beside.add(step, now, totals, model)

        HpaLoop(life, hpa, metrics, model, totals.at, add)
    whole = trace.end - trace.start
    for share in range(1, 101):
        life.run(whole * share / 100)
        yield share / 100, result
    if model.prices:
        hours = {name: life.outcomes.requested[name] / unit for name, (unit, _) in UNITS.items()}
        figures.cost = sum(hours[name] * model.prices.get(name, 0.0) for name in hours)
    figures.unchanged = life.unchanged()
    if result.hpa is not None:
        result.hpa.finish()
    yield 1.0, result


def _checked_columns(trace: Trace) -> list[UsageColumn]:
    columns = usage_columns(trace)
    if not columns or len(set(columns.values())) < len(columns):
        raise ModelError(
            "the trace of a VPA needs columns such as cpu and memory, or CONTAINER/cpu and POD/CONTAINER/cpu, each once; "
            f"its columns are {', '.join(trace.columns)}"
        )
    return list(columns.values())


def _workload(
    candidate: SizeCandidate, columns: Sequence[UsageColumn], replicas: int, model: Model, now: float
) -> Workload:
    """Return the target of the VPAs. Amounts of a container's own, `CONTAINER/cpu`, come before those of all, `cpu`."""
    target = candidate.vpas[0].spec.target_ref
    assert target is not None  # candidates have one
    names = dict.fromkeys(column.container for column in columns)
    for limited in model.limits:
        if (name := limited.rpartition("/")[0] or next(iter(names))) not in names:
            raise ModelError(f"limit of {limited}: the trace has no container {name}, but {', '.join(names)}")
    containers = [{"name": name, "resources": _resources(model, name)} for name in names]
    nodes = tuple(SimulatedNode(f"node-{number}", *ROOM) for number in range(replicas))
    nodes = nodes if target.kind == "DaemonSet" else ()
    namespace, pod = candidate.vpas[0].metadata.namespace, {"containers": containers}
    return workload_of(target.name, namespace, pod, replicas, model, now, kind=target.kind, nodes=nodes)


def _requests_of(workload: Workload, model: Model) -> Mapping[str, int]:
    """Return what a pod requests on average, in thousandths."""
    pods = max(len(workload.pods), 1)
    cpu = sum(size.cpu for pod in workload.pods for size in pod.size) // pods
    memory = sum(size.memory for pod in workload.pods for size in pod.size) * 1000 // pods
    return {**model.requests, **{name: amount for name, amount in ((CPU, cpu), (MEMORY, memory)) if amount}}


def _resources(model: Model, container: str) -> dict[str, dict[str, str]]:
    requests, limits = (_amounts(amounts, container) for amounts in (model.requests, model.limits))
    for name, limit in limits.items():
        if requests.get(name, limit).milli_value() > limit.milli_value():
            raise ModelError(f"{container} requests {requests[name]} of {name}, and its limit is {limit}")
    return {
        kind: {name: str(amount) for name, amount in amounts.items()}
        for kind, amounts in (("requests", requests), ("limits", limits))
    }


def _amounts(amounts: Mapping[str, int], container: str) -> dict[str, Quantity]:
    own = {name: amounts.get(f"{container}/{name}", amounts.get(name)) for name in (CPU, MEMORY)}
    return {name: Quantity.from_milli(amount) for name, amount in own.items() if amount is not None}


def _titles(candidate: SizeCandidate, columns: Sequence[UsageColumn]) -> dict[tuple[str, str, str], str]:
    """Return the title of each VPA, container and resource. What all have in common is left out."""
    is_single = len({column.container for column in columns}) == 1
    return {
        (vpa.key, column.container, column.resource): (
            f"{vpa.metadata.name} " if len(candidate.vpas) > 1 else ""
        )
        + (column.resource if is_single else f"{column.container}/{column.resource}")
        for vpa in candidate.vpas
        for column in columns
    }
