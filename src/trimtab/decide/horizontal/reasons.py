"""Why a number of replicas is what it is: codes, the facts behind them, and the one table of their texts.

Each step of a decision takes a `Count` and returns one. A step that changes the number gives it its own `Reason`, so nobody has to
find out later why the number is what it is. `ROWS` has all texts of a code: conditions, `trimtab explain`, log, `top`, dashboard
and reference page show its cells. No code reads a text back.
"""

from enum import StrEnum
from typing import Literal, NamedTuple

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.model.hpa.types import ConditionType, HPAScalingPolicy
from trimtab.model.json.wire import Wire
from trimtab.model.readable import counted
from trimtab.model.times import format_time

SCALE_TO_ZERO = "HPAScaleToZero"
SELECTION = "HPASelectionStrategy"
TOLERANCE = "HPAConfigurableTolerance"


class Code(StrEnum):
    """Why the replicas are what they are, in one word."""

    SCALES_UP = "ScalesUp"
    SCALES_DOWN = "ScalesDown"
    ABOVE_MAXIMUM = "AboveMaximum"
    BELOW_MINIMUM = "BelowMinimum"
    EARLIER_RECOMMENDATION = "ScalesUpToEarlierRecommendation"

    SCALE_UNREADABLE = "FailedGetScale"
    SCALE_NOT_WRITTEN = "FailedUpdateScale"
    BESIDE_NATIVE = "BesideNativeHPA"
    PAUSED = "Paused"
    SELECTOR_MISSING = "SelectorMissing"
    SELECTOR_INVALID = "SelectorInvalid"
    AMBIGUOUS = "Ambiguous"
    METRICS_FAILED = "MetricsFailed"
    METRICS_INCOMPLETE = "MetricsIncomplete"
    ALL_LEFT_OUT = "AllPodsLeftOut"
    WARMING_UP = "WarmingUp"
    OWNERS_UNREAD = "OwnersUnread"
    PLUGIN_FAILED = "PluginFailed"
    REPLICA_POLICY = "ReplicaPolicy"
    CACHES_STALE = "CachesStale"
    LOSS_POLICY = "LossPolicy"
    WITHIN_TOLERANCE = "WithinTolerance"
    WITHIN_AFTER_FILLING = "WithinToleranceOnceGapsAreFilled"
    DIRECTION_UNSURE = "DirectionUnsureBecauseOfGaps"
    MEASURED_BEFORE = "MeasuredBeforeScaleDown"
    NO_READY_PODS = "NoReadyPods"
    IDLE_AT_ZERO = "IdleAtZero"
    ENOUGH = "AsManyAsNeeded"
    DOWN_WINDOW = "HeldByScaleDownWindow"
    UP_WINDOW = "HeldByScaleUpWindow"
    AT_MAXIMUM = "AtMaximum"
    SURGE = "AtMaximumDuringSurge"
    AT_MINIMUM = "AtMinimum"
    UP_RATE = "HeldByScaleUpRate"
    DOWN_RATE = "HeldByScaleDownRate"
    UP_DISABLED = "ScaleUpDisabled"
    DOWN_DISABLED = "ScaleDownDisabled"


class Detail(Wire, tag="detail"):
    """What the message of an API server, a plug-in or a cache says."""

    text: str


class Unreadable(Wire, tag="unreadable"):
    """A target that cannot be read."""

    target: str
    message: str


class Asleep(Wire, tag="asleep"):
    """A target that the HPA itself scaled to zero, and that nothing wakes."""

    is_gate_off: bool

    def __str__(self) -> str:
        if self.is_gate_off:
            return f"the autoscaler scaled it to zero, and does not wake it while the feature gate {SCALE_TO_ZERO} is off"
        return "the autoscaler scaled it to zero, and none of its metrics can be read without pods, so nothing wakes it"


class LeftOutAll(Wire, tag="leftOutAll"):
    """A selection strategy that leaves out every pod, with the first of them."""

    strategy: str
    pod: str
    reason: str


class Asked(Wire, tag="asked"):
    """The metric that asks for the number, as conditions and events call it."""

    name: str
    others_lost: bool = False
    """Whether other metrics are lost, and count as their loss policies say."""
    is_inactive: bool = False
    """Whether a metric asks for nothing because it is not above its activation level."""


class AskedInstead(Wire, tag="askedInstead"):
    """The loss policy that asks for the number in place of a lost metric."""

    name: str
    replicas: int

    def __str__(self) -> str:
        return f"{self.name} asks for {self.replicas}"


class AskedByPolicy(Wire, tag="askedByPolicy"):
    """The replica policy that asks for the number."""

    name: str
    replicas: int
    reason: str

    def __str__(self) -> str:
        return f"{self.name} asks for {self.replicas}: {self.reason}"


class Earlier(Wire, tag="earlier"):
    """The recommendation that a window lets count."""

    replicas: int
    at: float | None
    """None if the window holds the present size, which was not recommended."""
    window: float

    def __str__(self) -> str:
        at = "" if self.at is None else f" at {format_time(wire_time(self.at))}"
        number, were = counted(self.replicas, "replica"), "was" if self.replicas == 1 else "were"
        return f"{number} {were} recommended{at}, within the window of {self.window:g} s"


class Rate(Wire, tag="rate"):
    """How far the replicas may go now, and the policy that limits them; None without `behavior`."""

    replicas: int
    policy: HPAScalingPolicy | None = None
    is_disabled: bool = False
    """Whether the direction is switched off by `selectPolicy: Disabled`."""

    def __str__(self) -> str:
        if self.is_disabled:
            return "scaling this way is disabled"
        if self.policy is None:
            return f"at most {self.replicas} in one sync"
        value = self.policy.value
        amount = f"{value}%" if self.policy.type == "Percent" else counted(value, "pod")
        return f"{amount} per {self.policy.period_seconds} s"


class ExtraPods(Wire, tag="extraPods"):
    """Pods that count beyond those that the target has."""

    number: int

    def __str__(self) -> str:
        return f"the selector counts {counted(self.number, 'pod')} more than the target has"


class Rival(Wire):
    """A native HPA on the same target."""

    name: str
    scaled_object: str = ""
    """The object of KEDA that made it; empty if none did."""

    def __str__(self) -> str:
        maker = f" of KEDA's ScaledObject {self.scaled_object}" if self.scaled_object else ""
        return f"HorizontalPodAutoscaler.autoscaling {self.name}{maker}"


class Rivals(Wire, tag="rivals"):
    """The native HPAs on the same target, which Trimtab does not serve."""

    hpas: tuple[Rival, ...] = ()
    unseen: str = ""
    """Why they could not be listed."""
    is_only_told: bool = False
    """Whether the decision goes on beside them, because nothing is written anyway."""

    def __str__(self) -> str:
        number = len(self.hpas)
        scale, are = ("scales", "is") if number == 1 else ("scale", "are")
        return f"{' and '.join(map(str, self.hpas))} {scale} the same target, and {are} not served by Trimtab"


Facts = (
    Detail
    | Unreadable
    | Asleep
    | LeftOutAll
    | Asked
    | AskedInstead
    | AskedByPolicy
    | Earlier
    | Rate
    | ExtraPods
    | Rivals
)


class Reason(Wire):
    """Why a number is what it is."""

    code: Code
    facts: Facts | None = None


class Count(NamedTuple):
    """A number of replicas, with the reason of the step that last changed it."""

    replicas: int
    why: Reason


class Direction(StrEnum):
    """The direction of the replicas."""

    UP = "up"
    DOWN = "down"
    EITHER = "either"
    """The reason goes away; what the metrics ask for then is unknown."""


class State(StrEnum):
    """What the dashboard shows at a glance."""

    SCALING = "scaling"
    STEADY = "steady"
    HELD = "held"
    PAUSED = "paused"
    PROBLEM = "problem"
    WAITING = "waiting"


class Act(StrEnum):
    """What would have to happen for the replicas to change."""

    SET = "Set"
    """Write `value` into `field` of the HPA."""
    OPEN_GATE = "OpenGate"
    """Start the operator with the feature gate `value`."""
    METRIC_ABOVE = "MetricAbove"
    METRIC_BELOW = "MetricBelow"
    METRIC_AT_MOST = "MetricAtMost"
    POLICY_ABOVE = "PolicyAbove"
    """The replica policy `value` asks for more than `amount` replicas."""
    POLICY_BELOW = "PolicyBelow"
    """The replica policy `value` asks for fewer than `amount` replicas."""
    KEEP = "Keep"
    """Metrics and replica policies ask for the same for `seconds`."""
    WAIT = "Wait"
    """Metrics and replica policies ask for the same until `until`, when the window or the policies in `field` allow it."""
    READ_METRIC = "ReadMetric"
    READ_OWNERS = "ReadOwners"
    REFRESH_CACHES = "RefreshCaches"
    READ_SCALE = "ReadScale"
    REPORT_SELECTOR = "ReportSelector"
    """The target's scale reports a selector that can be read."""
    REMOVE_CONFLICTING_HPA = "RemoveConflictingHpa"
    REMOVE_RIVAL = "RemoveRival"
    """One autoscaler is removed; `value` is the object of KEDA that made the other, if one did."""
    REPAIR_PLUGIN = "RepairPlugin"
    """The plug-in works again, which failed for the reason `value`."""
    COUNT_PODS = "CountPods"
    """The selection strategy counts at least one pod."""
    END_ROLLOUT = "EndRollout"
    """The rollout ends, so that the target has as many pods as replicas."""
    RESUME = "Resume"
    """Set the replicas of the target to 1 or more."""
    READY_POD = "ReadyPod"
    SAMPLES = "Samples"
    """The pods without usable samples are measured."""
    FIRST_SAMPLES = "FirstSamples"
    """Pods that just started are measured."""
    LATER_SAMPLES = "LaterSamples"
    """The pods are measured anew."""


class Set(NamedTuple):
    """A condition to set."""

    type: str
    status: Literal["True", "False"]
    reason: str
    message: str


class Remove(NamedTuple):
    """A condition to remove."""

    type: str


class Row(NamedTuple):
    """All texts of one code."""

    says: str
    """Why, for explain, log, top, dashboard and the reference page."""
    details: str = ""
    """The same with the facts of the reason, where it has some."""
    because: str = ""
    """Why the replicas change, as the event says it in upstream's words."""
    means: str = ""
    """What a reader of the reference page has to know beside that."""
    conditions: tuple[Set | Remove, ...] = ()
    """What the status shows, where that needs no fact."""
    shown_by: tuple[str, ...] = ()
    """The conditions of which the first that is there has the facts in its message."""
    holds: str = ""
    """What keeps a change from going farther."""
    follows: str = ""
    """What follows once the replicas change."""
    act: Act | None = None
    """What a user can do, where that does not depend on the facts."""
    asks: Direction | None = None
    """Which way the metrics and replica policies ask to go, or the bounds force."""
    state: State = State.HELD


_ABLE, _LIMITED = ConditionType.ABLE_TO_SCALE.value, ConditionType.SCALING_LIMITED.value
_ACTIVE = ConditionType.SCALING_ACTIVE.value
READY = Set(_ABLE, "True", "ReadyForNewScale", "recommended size matches current size")
WITHIN_RANGE = Set(
    _LIMITED, "False", "DesiredWithinRange", "the desired count is within the acceptable range"
)
DOWN_STABILIZED = Set(
    _ABLE,
    "True",
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
UP_STABILIZED = Set(
    _ABLE,
    "True",
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
TOO_FEW = Set(
    _LIMITED,
    "True",
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
)
TOO_MANY = Set(
    _LIMITED,
    "True",
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
)
UP_LIMIT = Set(
    _LIMITED,
    "True",
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
DOWN_LIMIT = Set(
    _LIMITED,
    "True",
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
_DISABLED = "scaling is disabled since the replica count of the target is zero"

ROWS: dict[Code, Row] = {
    Code.SCALES_UP: Row(
        says="a metric is above its target",
        because="{name} above target",
        means="More replicas are needed.",
        follows="the new pods become ready and are measured",
        asks=Direction.UP,
        state=State.SCALING,
    ),
    Code.SCALES_DOWN: Row(
        says="all metrics are below their targets",
        because="All metrics below target",
        means="Fewer replicas are needed.",
        follows="the remaining pods are measured",
        asks=Direction.DOWN,
        state=State.SCALING,
    ),
    Code.EARLIER_RECOMMENDATION: Row(
        says="more was recommended before, within the scale-down window",
        means="The metrics ask for no more now.",
        conditions=(DOWN_STABILIZED,),
        holds="more was recommended within the scale-down window",
        follows="the new pods become ready and are measured",
        asks=Direction.UP,
        state=State.SCALING,
    ),
    Code.ABOVE_MAXIMUM: Row(
        says="there are more replicas than maxReplicas",
        because="Current number of replicas above Spec.MaxReplicas",
        follows="metrics count again once replicas are within bounds",
        asks=Direction.DOWN,
        state=State.SCALING,
    ),
    Code.BELOW_MINIMUM: Row(
        says="there are fewer replicas than minReplicas",
        because="Current number of replicas below Spec.MinReplicas",
        follows="metrics count again once replicas are within bounds",
        asks=Direction.UP,
        state=State.SCALING,
    ),
    Code.SCALE_UNREADABLE: Row(
        says="its target cannot be read",
        details="its target {target} cannot be read: {message}",
        means="The target is missing, or its scale cannot be read; its replicas are unknown.",
        shown_by=(_ABLE,),
        act=Act.READ_SCALE,
        state=State.PROBLEM,
    ),
    Code.SCALE_NOT_WRITTEN: Row(
        says="the new size could not be written",
        shown_by=(_ABLE,),
        follows="the write is tried again with the next sync",
        state=State.PROBLEM,
    ),
    Code.BESIDE_NATIVE: Row(
        says="a native autoscaler scales the same target, so this one does not act",
        details="{facts}, so this one does not act",
        means="kube-controller-manager serves it, perhaps for KEDA. At zero the target stays asleep.",
        shown_by=(ConditionType.BESIDE_NATIVE,),
        act=Act.REMOVE_RIVAL,
        state=State.PROBLEM,
    ),
    Code.PAUSED: Row(
        says="someone set the replicas to zero, which pauses the autoscaler",
        details="{facts}",
        means="Or the autoscaler did, and nothing wakes it.",
        conditions=(
            Set(_ACTIVE, "False", "ScalingDisabled", _DISABLED),
            Remove(ConditionType.EXTRA_PODS),
            Remove(ConditionType.SELECTION_FALLBACK),
        ),
        shown_by=(_ACTIVE,),
        act=Act.RESUME,
        state=State.PAUSED,
    ),
    Code.SELECTOR_MISSING: Row(
        says="the target's scale names no selector, so its pods are unknown",
        act=Act.REPORT_SELECTOR,
        state=State.PROBLEM,
    ),
    Code.SELECTOR_INVALID: Row(
        says="the selector of the target's scale cannot be read",
        shown_by=(_ACTIVE,),
        act=Act.REPORT_SELECTOR,
        state=State.PROBLEM,
    ),
    Code.AMBIGUOUS: Row(
        says="another autoscaler counts the same pods",
        shown_by=(_ACTIVE,),
        act=Act.REMOVE_CONFLICTING_HPA,
        state=State.PROBLEM,
    ),
    Code.METRICS_FAILED: Row(says="no metric can be read", shown_by=(_ACTIVE,), state=State.PROBLEM),
    Code.METRICS_INCOMPLETE: Row(
        says="the metrics that can be read ask for less, but others cannot be read",
        means="Nothing is lowered on half the facts.",
        shown_by=(_ACTIVE,),
        asks=Direction.DOWN,
        state=State.PROBLEM,
    ),
    Code.ALL_LEFT_OUT: Row(
        says="the selection strategy leaves out every pod, so no usage can be measured",
        details="{says}: {strategy} leaves out {pod}: {reason}",
        means="Nothing changes.",
        shown_by=(_ACTIVE,),
        act=Act.COUNT_PODS,
        state=State.PROBLEM,
    ),
    Code.WARMING_UP: Row(
        says="its pods are too young for a first sample",
        means="All are younger than 120 s. It goes away by itself.",
        shown_by=(_ACTIVE,),
        act=Act.FIRST_SAMPLES,
        state=State.WAITING,
    ),
    Code.OWNERS_UNREAD: Row(
        says="the owners of some pods cannot be read, so replicas are not lowered",
        means="Fewer would follow otherwise.",
        shown_by=(ConditionType.SELECTION_FALLBACK,),
        act=Act.READ_OWNERS,
        asks=Direction.DOWN,
        state=State.PROBLEM,
    ),
    Code.PLUGIN_FAILED: Row(
        says="a plug-in gave no answer, so replicas are not lowered",
        details="{says}: {text}",
        means="It is a pod filter or a replica policy, and fewer would follow otherwise.",
        shown_by=(ConditionType.SELECTION_FALLBACK, ConditionType.PLUGIN_FAILED),
        act=Act.REPAIR_PLUGIN,
        asks=Direction.DOWN,
        state=State.PROBLEM,
    ),
    Code.REPLICA_POLICY: Row(
        says="a replica policy asks for that many",
        details="{name} asks for that many: {reason}",
        means="No metric asks for more.",
        shown_by=(_ACTIVE,),
        state=State.PROBLEM,
    ),
    Code.CACHES_STALE: Row(
        says="recent changes may be unknown, so replicas are not lowered",
        details="{says}: {text}",
        means="A cache of the operator is stale, and fewer would follow otherwise.",
        shown_by=(ConditionType.CACHES_STALE,),
        act=Act.REFRESH_CACHES,
        asks=Direction.DOWN,
        state=State.PROBLEM,
    ),
    Code.LOSS_POLICY: Row(
        says="a metric cannot be read, and its loss policy asks for this",
        shown_by=(ConditionType.METRIC_LOST,),
    ),
    Code.WITHIN_TOLERANCE: Row(says="usage is within the tolerance of its target", state=State.STEADY),
    Code.WITHIN_AFTER_FILLING: Row(
        says="usage is within the tolerance once pods without usable samples are counted in",
        act=Act.SAMPLES,
        state=State.STEADY,
    ),
    Code.DIRECTION_UNSURE: Row(
        says="pods without usable samples leave open which way to go", act=Act.SAMPLES
    ),
    Code.MEASURED_BEFORE: Row(
        says="the samples began before the last scale-down, when more pods carried the load",
        means="Fewer may follow from samples that begin after it.",
        act=Act.LATER_SAMPLES,
    ),
    Code.NO_READY_PODS: Row(says="no pod is ready yet to take the load", act=Act.READY_POD),
    Code.IDLE_AT_ZERO: Row(says="nothing asks for a pod", means="The target is at zero.", state=State.STEADY),
    Code.ENOUGH: Row(
        says="that many are needed",
        means="Usage is off target, and the same number comes out after rounding up.",
        state=State.STEADY,
    ),
    Code.DOWN_WINDOW: Row(
        says="fewer are asked for, but more was recommended within the scale-down window",
        conditions=(DOWN_STABILIZED,),
        holds="more was recommended within the scale-down window",
        shown_by=(_ABLE,),
        asks=Direction.DOWN,
    ),
    Code.UP_WINDOW: Row(
        says="more is asked for, but less was recommended within the scale-up window",
        conditions=(UP_STABILIZED,),
        holds="less was recommended within the scale-up window",
        shown_by=(_ABLE,),
        asks=Direction.UP,
    ),
    Code.AT_MAXIMUM: Row(
        says="more is asked for, but this is maxReplicas",
        details="{says}; {facts}",
        conditions=(TOO_MANY,),
        holds="this is maxReplicas",
        shown_by=(_LIMITED,),
        asks=Direction.UP,
    ),
    Code.SURGE: Row(
        says="more is asked for only while a rollout has more pods than replicas, and this is maxReplicas",
        conditions=(TOO_MANY,),
        act=Act.END_ROLLOUT,
        asks=Direction.UP,
    ),
    Code.AT_MINIMUM: Row(
        says="less is asked for, but this is minReplicas",
        details="less is asked for, but {text}",
        conditions=(TOO_FEW,),
        holds="this is minReplicas",
        shown_by=(_LIMITED,),
        asks=Direction.DOWN,
    ),
    Code.UP_RATE: Row(
        says="more is asked for, but the scale-up policies allow no more in this period",
        conditions=(UP_LIMIT,),
        holds="the scale-up policies allow no more in this period",
        shown_by=(_LIMITED,),
        asks=Direction.UP,
    ),
    Code.DOWN_RATE: Row(
        says="less is asked for, but the scale-down policies allow no less in this period",
        conditions=(DOWN_LIMIT,),
        holds="the scale-down policies allow no less in this period",
        shown_by=(_LIMITED,),
        asks=Direction.DOWN,
    ),
    Code.UP_DISABLED: Row(
        says="more is asked for, but scaling up is disabled by selectPolicy",
        conditions=(UP_LIMIT,),
        shown_by=(_LIMITED,),
        asks=Direction.UP,
    ),
    Code.DOWN_DISABLED: Row(
        says="less is asked for, but scaling down is disabled by selectPolicy",
        conditions=(DOWN_LIMIT,),
        shown_by=(_LIMITED,),
        asks=Direction.DOWN,
    ),
}


def describe(reason: Reason) -> str:
    """Return why the replicas stay as they are, with the facts."""
    row, facts = ROWS[reason.code], reason.facts
    if facts is None or not row.details:
        return row.says
    known = {name: getattr(facts, name) for name in facts.__struct_fields__}
    return row.details.format(says=row.says, facts=facts, **known)


def because(reason: Reason) -> str:
    """Return why the replicas change, as the event SuccessfulRescale says it."""
    facts, row = reason.facts, ROWS[reason.code]
    if isinstance(facts, AskedInstead | AskedByPolicy | Earlier):
        return str(facts)
    if not isinstance(facts, Asked) or reason.code is Code.SCALES_UP:
        return row.because.format(name=facts.name if isinstance(facts, Asked) else "")
    if facts.is_inactive:
        return "All metrics below target or activation"
    return "All metrics that count below target" if facts.others_lost else row.because
