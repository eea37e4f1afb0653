"""Metrics that are measured on each pod: which samples count, their ratio to the target, and the replicas that it asks for.

Readiness matters for CPU alone, because a starting pod burns CPU that says nothing about load. Succeeded pods are not special
(kk#86151): without a sample they are missing, as upstream has it. Utilization is cut to a whole percent, and averages to whole
thousandths, before the ratio is taken. Upstream's integers decide at the edges of the tolerance, so ours are the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from sys import float_info
from typing import NamedTuple

from trimtab.decide.horizontal.arithmetic import int32_of, quotient, ratio_of, round_up
from trimtab.decide.horizontal.memory import EMPTY, Memory
from trimtab.decide.horizontal.observation.pods import MissingRequestError, PodSnapshot
from trimtab.decide.horizontal.observation.samples import Move, PodSamples, Sample, earliest_beginning
from trimtab.decide.horizontal.observation.staleness import ANYTHING_GOES, SampleLimits
from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity
from trimtab.model.readable import counted

NO_SAMPLES = "did not receive metrics for targeted pods (pods might be unready)"
NO_PODS = "no pods returned by selector while calculating replica count"


class UnusableMetric(Exception):  # noqa: N818 - it ends one metric's computation and is turned into a Failure at once
    """The metric gives no number, for the reason in the message.

    `detail` precedes the message in the reconcile's error only.
    """

    is_misconfigured = False
    is_rejected = False
    is_unmeasured = False

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail

    def reworded(self, message: str, detail: str = "") -> "UnusableMetric":
        """Return the same error with another message."""
        return type(self)(message, detail)


class Misconfigured(UnusableMetric):
    """The metric gives no number until a spec is corrected."""

    is_misconfigured = True


class Rejected(UnusableMetric):
    """The metric gives no number because its samples were rejected."""

    is_rejected = True


class Unmeasured(UnusableMetric):
    """The metric gives no number because no pod has a sample."""

    is_unmeasured = True


class Tolerance(Wire):
    """Shares of the target per direction, bounds included."""

    up: float = 0.1
    down: float = 0.1

    def covers(self, ratio: float) -> bool:
        """Return whether a ratio of usage to target is close enough to 1."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up

    def __str__(self) -> str:
        return f"[down:{self.down * 100.0:.1f}%, up:{self.up * 100.0:.1f}%]"


def tolerance_of(
    behavior: HorizontalPodAutoscalerBehavior | None, settings: HpaSettings, gates: FeatureGates
) -> Tolerance:
    """Return the tolerance in force: the behavior's with the gate on, else the controller's."""
    up = down = settings.tolerance
    if behavior is not None and gates.hpa_configurable_tolerance:
        if behavior.scale_up is not None and behavior.scale_up.tolerance is not None:
            up = _bounded(behavior.scale_up.tolerance)
        if behavior.scale_down is not None and behavior.scale_down.tolerance is not None:
            down = _bounded(behavior.scale_down.tolerance)
    return Tolerance(up=up, down=down)


def _bounded(tolerance: Quantity) -> float:
    # A tolerance beyond all floats counts as the largest float, which covers as much.
    return min(tolerance.as_float(), float_info.max)


class Context(Wire):
    """The target and its pods at one moment."""

    namespace: str
    now: float
    current: int
    """spec.replicas of the scale."""
    status_replicas: int
    pods: tuple[PodSnapshot, ...]
    """The pods that count, after selection."""
    has_pods: bool
    """Whether the target's selector found any pod at all, counted or not."""
    tolerance: Tolerance
    settings: HpaSettings
    rules: Rules
    limits: SampleLimits
    memory: Memory = EMPTY
    averages_strays: bool = False
    """Whether samples of pods that are not counted are averaged in, as upstream does."""
    may_sleep: bool = False
    """Whether the workload may go to zero, so that activation levels count."""
    all_left_out: str = ""
    """Why no pod counts, if the selection strategy leaves out every pod."""

    @property
    def ready_pods(self) -> int:
        """Return how many of the counted pods are running and ready."""
        return sum(pod.is_ready for pod in self.pods)

    def removed_since(self, samples: Iterable[Sample], moves: tuple[Move, ...]) -> int:
        """Return how many replicas were removed since the earliest of these samples began, less those added."""
        memory = self.memory
        if not memory.scale_down or not self.rules.ours:
            return 0
        began = earliest_beginning(samples, moves, self.now)
        added = sum(event.change for event in memory.scale_up if event.at > began)
        return max(sum(event.change for event in memory.scale_down if event.at > began) - added, 0)


class Groups:
    """Pods by what their samples are worth, with the `values` of the ready pods."""

    __slots__ = ("ignored", "missing", "ready", "rejected", "stray", "unready", "values")

    def __init__(self) -> None:
        self.ready: list[PodSnapshot] = []
        self.values: list[int] = []
        self.unready: list[PodSnapshot] = []
        self.missing: list[PodSnapshot] = []
        self.ignored: list[PodSnapshot] = []
        self.rejected: list[tuple[str, str]] = []
        """Names of the missing pods whose samples were rejected, with the rule."""
        self.stray: list[int] = []
        """Samples of pods that are not in the list; upstream averages them in."""


def group_pods(
    pods: Iterable[PodSnapshot],
    samples: Mapping[str, Sample],
    now: float,
    settings: HpaSettings,
    *,
    is_cpu: bool,
    limits: SampleLimits = ANYTHING_GOES,
    moves: tuple[Move, ...] = (),
) -> Groups:
    """Sort pods into groups by their samples."""
    groups = Groups()
    find, take, keep = samples.get, groups.ready.append, groups.values.append
    old, lowest = limits.old_dates(samples.values(), moves), limits.lowest
    period = settings.cpu_initialization_period
    for pod in pods:
        sample = find(pod.name)
        # Nearly every pod runs, is long ready and has a fresh sample; all others take the full rule.
        if (
            sample is not None
            and sample.value >= lowest
            and sample.timestamp not in old
            and pod.phase == "Running"
            and not pod.is_deleted
            and (
                not is_cpu
                or (pod.ready == "True" and pod.started is not None and pod.started + period <= now)
            )
        ):
            take(pod)
            keep(sample.value)
        else:
            rule = "" if sample is None else limits.reject_reason(sample, old)
            _place(groups, pod, sample, now, settings, rule, is_cpu=is_cpu)
    return groups


def _place(
    groups: Groups,
    pod: PodSnapshot,
    sample: Sample | None,
    now: float,
    settings: HpaSettings,
    rule: str,
    *,
    is_cpu: bool,
) -> None:
    if pod.is_deleted or pod.phase == "Failed":
        groups.ignored.append(pod)
    elif pod.phase == "Pending":
        groups.unready.append(pod)
    elif sample is None:
        groups.missing.append(pod)
    elif rule:
        groups.missing.append(pod)
        groups.rejected.append((pod.name, rule))
    elif is_cpu and is_initializing(pod, sample, now, settings):
        groups.unready.append(pod)
    else:
        groups.ready.append(pod)
        groups.values.append(sample.value)


def is_initializing(pod: PodSnapshot, sample: Sample, now: float, settings: HpaSettings) -> bool:
    """Return whether a pod's CPU sample is from before it was ready for work."""
    if not pod.ready or pod.started is None:
        return True
    if pod.started + settings.cpu_initialization_period > now:
        # Young: the sample counts only if a whole window was measured since readiness last changed.
        return pod.ready == "False" or sample.timestamp < pod.ready_since + sample.window
    # Old and unready: was it ever ready? It was, if readiness changed well after the start.
    return pod.ready == "False" and pod.started + settings.initial_readiness_delay > pod.ready_since


def stray_values(pods: Iterable[PodSnapshot], samples: Mapping[str, Sample]) -> list[int]:
    """Return the samples of pods that are not listed (just deleted, or foreign)."""
    listed = {pod.name for pod in pods}
    return [sample.value for name, sample in samples.items() if name not in listed]


def group_counted(samples: PodSamples, context: Context, *, is_cpu: bool) -> Groups:
    """Group the counted pods, or raise UnusableMetric if no sample is left."""
    if not context.has_pods:
        raise Unmeasured(NO_PODS)
    groups = group_pods(
        context.pods,
        samples.samples,
        context.now,
        context.settings,
        is_cpu=is_cpu,
        limits=context.limits,
        moves=samples.moves,
    )
    if context.averages_strays:
        groups.stray = stray_values(context.pods, samples.samples)
    if not groups.ready and not groups.stray:
        if groups.rejected:
            name, rule = min(groups.rejected)
            raise Rejected(
                f"refused the samples of {counted(len(groups.rejected), 'pod')}, first {name}: {rule}"
            )
        if context.all_left_out:
            raise UnusableMetric(context.all_left_out)
        raise Unmeasured(NO_SAMPLES)
    return groups


class Gaps(Wire):
    """How pods without usable samples change the ratio, by the direction that the measured pods point in.

    Growing, every gap counts as idle; shrinking, a pod without a sample counts as fully used.
    """

    up_share: float
    """What one unit of the value is worth once gaps are filled, growing."""
    up_pods: int
    down_share: float
    down_rest: float
    """What the filled gaps add to the value, shrinking."""
    down_pods: int


class Usage:
    """Usage of the ready pods against a target: in percent of `requests`, or per pod in thousandths without them."""

    __slots__ = ("_requests", "_used", "_weight", "groups", "ratio", "target", "value")

    def __init__(self, groups: Groups, target: int, requests: Mapping[str, int] | None = None) -> None:
        """Measure the ready pods, and stray samples where those count."""
        self.groups, self.target, self._requests = groups, target, requests
        self._used, self._weight = sum(groups.values), self._weight_of(groups.ready)
        if requests is None:
            self._used += sum(groups.stray)
            self._weight += len(groups.stray)
        self.value = self._value(self._used, self._weight)
        self.ratio = ratio_of(self.value, target)

    @property
    def average(self) -> int:
        """Return the usage per pod in thousandths."""
        if self._requests is None:
            return self.value
        return quotient(self._used, len(self.groups.ready))

    def with_gaps(self, *, counts_unready: bool) -> tuple[float, int]:
        """Return the ratio and the number of samples with the missing pods, and with unready pods as idle.

        A missing pod counts as fully used when shrinking, and as idle when growing.
        """
        groups, used, weight = self.groups, self._used, self._weight
        samples = len(groups.ready) + len(groups.stray)
        if self.ratio != 1.0:
            if self.ratio < 1.0:
                used += self._missing_usage()
            weight += self._weight_of(groups.missing)
            samples += len(groups.missing)
        if counts_unready:
            weight += self._weight_of(groups.unready)
            samples += len(groups.unready)
        return ratio_of(self._value(used, weight), self.target), samples

    def gaps(self) -> Gaps:
        """Return how `with_gaps` changes the ratio."""
        groups, ready, missing = self.groups, self._weight, self._weight_of(self.groups.missing)
        growing = max(ready + missing + self._weight_of(groups.unready), 1)
        shrinking = max(ready + missing, 1)
        measured = len(groups.ready) + len(groups.stray) + len(groups.missing)
        return Gaps(
            up_share=ready / growing,
            up_pods=measured + len(groups.unready),
            down_share=ready / shrinking,
            down_rest=self._full * missing / shrinking,
            down_pods=measured,
        )

    @property
    def _full(self) -> int:
        """Return the value of a pod that is fully used."""
        return self.target if self._requests is None else max(100, self.target)

    def _missing_usage(self) -> int:
        missing, requests = self.groups.missing, self._requests
        if requests is None:
            return len(missing) * self._full
        return sum(quotient(requests[pod.name] * self._full, 100) for pod in missing)

    def _weight_of(self, pods: Sequence[PodSnapshot]) -> int:
        """Return what pods count for in an average: their requests, or their number."""
        requests = self._requests
        if requests is None:
            return len(pods)
        if len(pods) == len(requests):
            return sum(requests.values())
        return sum([requests[pod.name] for pod in pods])

    def _value(self, used: int, weight: int) -> int:
        if self._requests is None:
            return quotient(used, weight)
        if not weight:
            raise UnusableMetric("no metrics returned matched known pods")
        return int32_of(quotient(used * 100, weight))


def requests_of(pods: tuple[PodSnapshot, ...], resource: str, container: str, rules: Rules) -> dict[str, int]:
    """Return the request of each pod. Every listed pod needs one, as upstream has it."""
    adds_overhead = rules.minor < 38
    if not container and not adds_overhead:
        try:
            return {pod.name: pod.requests[resource] for pod in pods}
        except KeyError:
            # A pod has no containers, or a request is missing. Which one is named must not depend on the order.
            pods = tuple(sorted(pods, key=lambda pod: pod.name))
    try:
        return {pod.name: pod.request_of(resource, container, adds_overhead=adds_overhead) for pod in pods}
    except MissingRequestError as error:
        raise Misconfigured(str(error)) from error


class ProposalOutcome(StrEnum):
    """How a ratio became replicas."""

    PROPOSED = "Proposed"
    WITHIN_TOLERANCE = "WithinTolerance"
    WITHIN_AFTER_FILLING = "WithinToleranceOnceGapsAreFilled"
    DIRECTION_UNSURE = "DirectionUnsureBecauseOfGaps"
    NO_READY_PODS = "NoReadyPods"
    MEASURED_BEFORE = "MeasuredBeforeScaleDown"
    FROM_ZERO = "FromZero"
    BELOW_ACTIVATION = "BelowActivation"


class RatioResult(NamedTuple):
    """Replicas out of a ratio."""

    replicas: int
    outcome: ProposalOutcome
    filled_ratio: float | None = None
    removed: int = 0
    """Replicas that were removed since the samples began, and that count as measured."""


def times(ratio: float, pods: int, removed: int, current: int) -> RatioResult:
    """Multiply a ratio by the pods. Below 1 the load was carried by those, too, that were removed since the samples began."""
    asked = int32_of(round_up(ratio * pods))
    if ratio >= 1.0 or not removed:
        return RatioResult(asked, ProposalOutcome.PROPOSED)
    carried = min(int32_of(round_up(ratio * (pods + removed))), current)
    if carried <= asked:
        return RatioResult(asked, ProposalOutcome.PROPOSED)
    outcome = ProposalOutcome.MEASURED_BEFORE if carried == current else ProposalOutcome.PROPOSED
    return RatioResult(carried, outcome, removed=removed)


def replicas_from_ratio(usage: Usage, context: Context, removed: int = 0) -> RatioResult:
    """Turn a ratio over the ready pods into replicas. Filled gaps never reverse the direction."""
    ratio, groups, current, covers = usage.ratio, usage.groups, context.current, context.tolerance.covers
    counts_unready = bool(groups.unready) and ratio > 1.0
    if not counts_unready and not groups.missing:
        if covers(ratio):
            return RatioResult(current, ProposalOutcome.WITHIN_TOLERANCE)
        return times(ratio, len(groups.ready), removed, current)
    filled, samples = usage.with_gaps(counts_unready=counts_unready)
    if covers(filled):
        return RatioResult(current, ProposalOutcome.WITHIN_AFTER_FILLING, filled)
    result = times(filled, samples, removed, current)
    is_reversed = (ratio < 1.0 < filled) or (filled < 1.0 < ratio)
    if (
        is_reversed
        or (filled < 1.0 and result.replicas > current)
        or (filled > 1.0 and result.replicas < current)
    ):
        return RatioResult(current, ProposalOutcome.DIRECTION_UNSURE, filled)
    return result._replace(filled_ratio=filled)
