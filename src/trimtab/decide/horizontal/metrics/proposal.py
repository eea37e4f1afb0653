"""The proposal of a metric, and the step from a usage ratio to replicas that pod metrics share."""

from collections.abc import Callable
from enum import StrEnum
from hashlib import blake2s
from typing import Literal

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER, int32_of, round_up
from trimtab.decide.horizontal.metrics.pod_groups import Groups
from trimtab.decide.horizontal.metrics.tolerance import Tolerance
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.observation.staleness import SampleAgeLimits
from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.model.hpa.types import LossPolicy, MetricSpec, MetricStatus
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire

Action = Literal["scale_up", "scale_down", "none"]
ErrorLabel = Literal["spec", "internal", "none"]


class Computation(Wire):
    """Labels of the Prometheus metric that counts computations, one per metric of the spec."""

    type: str
    action: Action = "none"
    error: ErrorLabel = "none"


class ProposalOutcome(StrEnum):
    """How a ratio became replicas."""

    PROPOSED = "Proposed"
    WITHIN_TOLERANCE = "WithinTolerance"
    WITHIN_AFTER_FILLING = "WithinToleranceOnceGapsAreFilled"
    DIRECTION_UNSURE = "DirectionUnsureBecauseOfGaps"
    NO_READY_PODS = "NoReadyPods"
    FROM_ZERO = "FromZero"


class PodCounts(Wire):
    """How many pods were in which group."""

    ready: int = 0
    unready: int = 0
    missing: int = 0
    ignored: int = 0


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


class Proposal(Wire, tag="proposal", tag_field="result"):
    """What one metric asks for."""

    type: str
    name: str
    """The metric as conditions and events call it."""
    replicas: int
    outcome: ProposalOutcome
    ratio: float | None
    """Value by target; None where there is nothing to divide by."""
    value: int
    """Percent for a utilisation, else thousandths."""
    target: int
    status: MetricStatus
    timestamp: float = NEVER
    filled_ratio: float | None = None
    counts: PodCounts | None = None
    rejected_samples: tuple[tuple[str, str], ...] = ()
    """Pods whose samples were rejected, with the rule."""
    pods: int = 0
    """How many pods, or replicas of the target's status, multiply the ratio."""
    total: int | None = None
    """The undivided number behind an average, in thousandths, where the metric is one number."""
    gaps: Gaps | None = None

    @property
    def measured_pods(self) -> int:
        """Return how many pods the ratio was multiplied by."""
        if self.filled_ratio is None or self.gaps is None:
            return self.pods
        return self.gaps.up_pods if self.filled_ratio > 1.0 else self.gaps.down_pods


class Failure(Wire, tag="failure", tag_field="result"):
    """Why one metric cannot be used."""

    type: str
    reason: str
    """Reason of the condition and of the event."""
    message: str
    """What the event says."""
    error: str
    """What the reconcile reports; it names the metric."""
    is_spec_error: bool = False
    is_misconfigured: bool = False
    """Whether the spec of the metric or of the pods is at fault, so that no answer could have helped."""
    is_rejected: bool = False
    """Whether an answer came, and a sample in it was rejected."""
    is_unmeasured: bool = False
    """Whether no pod has a sample."""
    is_warming_up: bool = False
    """Whether no pod has a sample because all of them are too young."""


class LossFallback(Wire, tag="fallback", tag_field="result"):
    """What a lost metric counts as, by its loss policy."""

    type: str
    label: str
    policy: str
    failure: Failure
    replicas: int | None = None
    """What counts in its place; None: nothing."""
    at: float | None = None
    """LastGood: when the metric was last read."""
    until: float | None = None
    """LastGood: how long that counts."""

    @property
    def name(self) -> str:
        """Return the fallback as conditions and events call it."""
        kind = "the last good value" if self.policy == LossPolicy.LAST_GOOD else "the fall-back"
        return f"{kind} of {self.type} metric {self.label}"

    @property
    def holds(self) -> bool:
        """Return whether the replicas may not be lowered, because the policy gives no replicas."""
        return self.replicas is None and self.policy != LossPolicy.IGNORE


Result = Proposal | Failure | LossFallback
"""The result of one metric."""


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


class RatioResult(Wire, kw_only=False):
    """Replicas out of a ratio."""

    replicas: int
    outcome: ProposalOutcome
    filled_ratio: float | None = None


Fill = Callable[[bool], tuple[float, int]]
"""Return the ratio and the number of samples with the gaps filled, given whether unready pods count."""


def replicas_from_ratio(
    ratio: float, current: int, groups: Groups, tolerance: Tolerance, fill: Fill
) -> RatioResult:
    """Turn a ratio over the ready pods into replicas. Filled gaps never reverse the direction."""
    counts_unready = bool(groups.unready) and ratio > 1.0
    if not counts_unready and not groups.missing:
        if tolerance.covers(ratio):
            return RatioResult(current, ProposalOutcome.WITHIN_TOLERANCE)
        return RatioResult(int32_of(round_up(ratio * len(groups.ready))), ProposalOutcome.PROPOSED)
    filled, samples = fill(counts_unready)
    if tolerance.covers(filled):
        return RatioResult(current, ProposalOutcome.WITHIN_AFTER_FILLING, filled)
    if (ratio < 1.0 < filled) or (filled < 1.0 < ratio):
        return RatioResult(current, ProposalOutcome.DIRECTION_UNSURE, filled)
    replicas = int32_of(round_up(filled * samples))
    if (filled < 1.0 and replicas > current) or (filled > 1.0 and replicas < current):
        return RatioResult(current, ProposalOutcome.DIRECTION_UNSURE, filled)
    return RatioResult(replicas, ProposalOutcome.PROPOSED, filled)


class ProposalContext(Wire):
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
    limits: SampleAgeLimits
    averages_strays: bool = False
    """Whether samples of pods that are not counted are averaged in, as upstream does."""
    all_left_out: str = ""
    """Why no pod counts, if the selection strategy leaves out every pod."""

    @property
    def ready_pods(self) -> int:
        """Return how many of the counted pods are running and ready."""
        return sum(pod.is_ready for pod in self.pods)


def metric_key(spec: MetricSpec) -> str:
    """Return the key under which the memory stores values of a metric, for one target."""
    asked = msgspec.structs.replace(spec, on_loss=None, max_age_seconds=None)
    return blake2s(wire.encode(asked), digest_size=6).hexdigest()
