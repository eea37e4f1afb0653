"""Plays VPAs on recorded usage: their pods are created, resized, evicted and killed as they would have been."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trimtab.backtest.backtest import first_replicas
from trimtab.backtest.life import Life, Outcomes
from trimtab.backtest.load import RecordedLoad
from trimtab.backtest.model import Model, ModelError, model_metrics
from trimtab.backtest.production.horizontal import Candidate, HpaLoop, SyncStep
from trimtab.backtest.results import Results, new_results
from trimtab.backtest.trace import Trace, with_totals
from trimtab.backtest.workload import Behaviour, SimulatedNode, Workload
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.quantity import Quantity
from trimtab.model.readable import readable_amount
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAConditionType, VPAScope
from trimtab.operator.settings.settings import Settings

if TYPE_CHECKING:
    from trimtab.decide.vertical.recommend.plugin_estimates import Estimators

MAIN = "main"
"""The container of a column that names none."""

UNITS = {CPU: (1.0, "core"), MEMORY: (2.0**30, "GiB")}
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
        """Note a target."""
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
        for resource in dict.fromkeys(title.rpartition("/")[2].rpartition(" ")[2] for title in self.sizes):
            unit, name = UNITS[resource]
            for what, amounts in (
                ("requested", outcomes.requested),
                ("used", outcomes.used),
                ("wasted", outcomes.wasted),
                ("starved", outcomes.starved),
            ):
                rows[f"{resource}: {what}"] = f"{amounts[resource] / unit:,.1f} {name}-hours"
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
            rows[f"{title}: target"] = _range(title.rpartition("/")[2].rpartition(" ")[2], size)
        return rows


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
    targets: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """The times and targets of each size, in thousandths."""
    replicas: Results | None = None
    """Of the HPA beside the VPAs."""

    @property
    def name(self) -> str:
        """Return the name of the candidate."""
        return self.figures.name

    def rows(self) -> dict[str, str]:
        """Return the figures as text, by their titles, those of the HPA first."""
        return ({} if self.replicas is None else self.replicas.figures.rows()) | self.figures.rows()

    def uses(self, resource: str) -> bool:
        """Return whether the trace has usage of a resource."""
        return any(title.rpartition("/")[2].rpartition(" ")[2] == resource for title in self.figures.sizes)


def run_sizes(candidate: SizeCandidate, trace: Trace, model: Model) -> Iterator[tuple[float, SizeResults]]:
    """Run VPAs. Yield the share done and the results so far.

    The last results are complete. Raise ModelError if the trace has no column of a container's usage.
    """
    columns = usage_columns(trace)
    hpa, totals = candidate.hpa, with_totals(trace)
    metrics = model_metrics(hpa.hpa, totals, model) if hpa is not None else ()
    workload = _workload(candidate, columns, totals, model)
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
    result = SizeResults(figures, life, {title: [] for title in titles.values()})
    figures.outcomes = life.outcomes
    life.on_recommend = lambda: _count(figures, life)
    if hpa is not None:
        replicas = result.replicas = new_results(hpa, metrics)

        def add(step: SyncStep) -> None:
            # A utilization is of what the pods request now.
            now = model_metrics(hpa.hpa, totals, replace(model, requests=_requests_of(workload, model)))
            replicas.add_step(now, totals, model)(step)

        HpaLoop(life, hpa, metrics, model, totals.at, add)
    whole = trace.end - trace.start
    for share in range(1, 101):
        life.run(whole * share / 100)
        yield share / 100, result
    _keep_targets(result, life, titles)
    if model.prices:
        amounts = {CPU: life.outcomes.requested[CPU], MEMORY: life.outcomes.requested[MEMORY] / 2**30}
        figures.cost = sum(model.prices.get(resource, 0.0) * hours for resource, hours in amounts.items())
    figures.unchanged = life.unchanged()
    if result.replicas is not None:
        result.replicas.finish()
    yield 1.0, result


def usage_columns(trace: Trace) -> dict[str, tuple[str, str]]:
    """Return container and resource of each column that has usage, or raise ModelError."""
    found: dict[str, tuple[str, str]] = {}
    totals: set[tuple[str, str]] = set()
    is_valid = True
    for column in trace.columns:
        *owner, resource = column.split("/")
        if resource not in UNITS or len(owner) > 2:
            continue
        found[column] = (owner[-1] if owner else MAIN, resource)
        if len(owner) < 2:
            is_valid &= found[column] not in totals
            totals.add(found[column])
    if not is_valid or not found:
        raise ModelError(
            "the trace of a VPA needs columns such as cpu and memory, or CONTAINER/cpu and POD/CONTAINER/cpu, each once; "
            f"its columns are {', '.join(trace.columns)}"
        )
    return found


def _workload(
    candidate: SizeCandidate, columns: Mapping[str, tuple[str, str]], trace: Trace, model: Model
) -> Workload:
    """Return the target of the VPAs. Amounts of a container's own, `CONTAINER/cpu`, come before those of all, `cpu`."""
    targets = [vpa.spec.target_ref for vpa in candidate.vpas]
    target = next(target for target in targets if target is not None)
    hpa = candidate.hpa
    metrics = model_metrics(hpa.hpa, trace, model) if hpa is not None else ()
    recorded = {title.partition("/")[0] for title in trace.columns if title.count("/") == 2}
    if model.replicas is not None or not recorded:
        replicas = first_replicas(hpa, metrics, trace, model) if hpa is not None else (model.replicas or 1)
        if model.replicas == 0 and hpa is None:
            raise ModelError(f"{candidate.name}: a VPA needs pods: set replicas to 1 or more")
    else:
        replicas = len(recorded)
    containers = [
        {
            "name": name,
            "resources": {"requests": _amounts(model.requests, name), "limits": _amounts(model.limits, name)},
        }
        for name in dict.fromkeys(container for container, _ in columns.values())
    ]
    nodes = [SimulatedNode(f"node-{number}", *ROOM) for number in range(replicas)]
    return Workload(
        target.name,
        {"metadata": {"labels": {"simulated": target.name}}, "spec": {"containers": containers}},
        kind=target.kind,
        namespace=candidate.vpas[0].metadata.namespace,
        replicas=replicas,
        nodes=tuple(nodes) if target.kind == "DaemonSet" else (),
        behaviour=Behaviour(start_seconds=model.start_seconds),
        now=trace.start,
    )


def _requests_of(workload: Workload, model: Model) -> Mapping[str, int]:
    """Return what a pod requests on average, in thousandths."""
    pods = max(len(workload.pods), 1)
    cpu = sum(size.cpu for pod in workload.pods for size in pod.size) // pods
    memory = sum(size.memory for pod in workload.pods for size in pod.size) * 1000 // pods
    return {**model.requests, **{name: amount for name, amount in ((CPU, cpu), (MEMORY, memory)) if amount}}


def _amounts(amounts: Mapping[str, int], container: str) -> dict[str, str]:
    found: dict[str, Any] = {name: amount for name, amount in amounts.items() if "/" not in name}
    for name, amount in amounts.items():
        owner, _, resource = name.rpartition("/")
        if owner == container:
            found[resource] = amount
    return {name: str(Quantity.from_milli(amount)) for name, amount in found.items()}


def _titles(
    candidate: SizeCandidate, columns: Mapping[str, tuple[str, str]]
) -> dict[tuple[str, str, str], str]:
    """Return the title of each VPA, container and resource. What all have in common is left out."""
    containers = {container for container, _ in columns.values()}
    return {
        (vpa.key, container, resource): (f"{vpa.metadata.name} " if len(candidate.vpas) > 1 else "")
        + (resource if len(containers) == 1 else f"{container}/{resource}")
        for vpa in candidate.vpas
        for container, resource in dict.fromkeys(columns.values())
    }


def _count(figures: SizeFigures, life: Life) -> None:
    figures.syncs += 1
    conditions = [vpa.status.condition(VPAConditionType.ESTIMATOR_FAILED) for vpa in life.vpas.values()]
    failures = [condition.message for condition in conditions if condition is not None]
    if failures:
        figures.failed_syncs += 1
        figures.failure = figures.failure or failures[0]


def _keep_targets(result: SizeResults, life: Life, titles: Mapping[tuple[str, str, str], str]) -> None:
    for at, vpa in life.advice:
        recommendation = vpa.status.recommendation
        for entry in recommendation.container_recommendations if recommendation else ():
            for resource, quantity in entry.target.items():
                title = titles.get((vpa.key, entry.container_name, resource))
                if title is None:
                    continue
                target, changes = quantity.milli_value(), result.targets[title]
                result.figures.sizes[title].recommend(target)
                if not changes or changes[-1][1] != target:
                    changes.append((at, target))
