"""What the pages show, as values: the JSON that the server sends and the scripts draw.

Nothing here is decided; each value is put together from what `trimtab.decide` returned.
"""

from typing import dataclass_transform

import msgspec


# Tells type checkers that subclasses are frozen without each of them having to say so again.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class JsonView(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """A value for the page: every field is sent, zeros included, because the scripts read them all."""


class HorizontalRow(JsonView):
    """One HPA in the overview."""

    id: str
    """`hpa/namespace/name`, or `native/namespace/name` for an object of autoscaling/v2 itself."""
    namespace: str
    name: str
    target: str
    low: int
    high: int
    current: int = 0
    desired: int = 0
    state: str = "waiting"
    """scaling, steady, held, paused, problem or waiting."""
    reason: str = ""
    summary: str = "no decision yet"
    at: float = 0.0
    """When it was last decided about, in seconds since 1970."""
    is_dry_run: bool = False


class VerticalRow(JsonView):
    """One VPA in the overview."""

    id: str
    """`vpa/namespace/name`."""
    namespace: str
    name: str
    target: str
    mode: str
    scope: str = ""
    state: str = "waiting"
    summary: str = "no recommendation yet"
    amounts: str = ""
    """The recommended targets, in short."""


Row = HorizontalRow | VerticalRow


class MetricView(JsonView):
    """What one metric said, in words and as numbers in its own unit."""

    name: str
    """What kind of number it is."""
    label: str
    """In short: the resource or the metric."""
    type: str
    unit: str = ""
    """`%`, `cores`, `bytes` or nothing."""
    is_per_pod: bool = False
    """Whether the numbers are an average over the pods."""
    value: float | None = None
    target: float | None = None
    up: float | None = None
    """It asks for more above this value."""
    down: float | None = None
    """It asks for fewer below this value, or at it."""
    value_text: str = ""
    target_text: str = ""
    up_text: str = ""
    down_text: str = ""
    ratio: float | None = None
    replicas: int | None = None
    is_winner: bool = False
    problem: str = ""
    fallback: str = ""
    """What it counts as while it cannot be read, if it has a loss policy."""
    notes: tuple[str, ...] = ()


class PolicyView(JsonView):
    """The rules of one direction and what they allow now."""

    window_seconds: float
    select: str
    policies: tuple[str, ...]
    allowed: int
    """The farthest that one sync may go now, bounds included."""


class DecisionView(JsonView):
    """One decision, told."""

    reason: str
    state: str
    summary: str
    next_step: str
    more: str
    """Why not more replicas, in words."""
    less: str
    """Why not fewer."""
    current: int
    desired: int
    asked: int | None
    low: int
    high: int
    strategy: str
    counted: int | None
    """None when the decision ended before any pod was looked at."""
    left_out: int
    extra: int
    """Of those counted, how many are more than the target has."""
    fallback: str
    limit: str
    ignored: tuple[str, ...]
    """Fields of the spec that have no effect, because their feature gate is off."""
    tolerance_up: float
    tolerance_down: float
    metrics: tuple[MetricView, ...]
    up: PolicyView
    down: PolicyView
    window: tuple[tuple[float, int], ...]
    """Remembered recommendations: moment and replicas."""


class PodView(JsonView):
    """A pod with the target's labels: whether it counts, and its samples."""

    name: str
    phase: str
    is_ready: bool
    is_counted: bool
    is_foreign: bool = False
    """Whether it counts although it is not the target's own."""
    why: str = ""
    samples: tuple[str, ...] = ()
    """One per metric; empty where the metric is not one of pods or has no sample."""


class EventView(JsonView):
    """An event that was told about an autoscaler."""

    at: float
    type: str
    reason: str
    message: str


class ConditionView(JsonView):
    """A condition of a status."""

    type: str
    status: str
    reason: str
    message: str
    since: float | None


class MetricTrack(JsonView):
    """A metric over time; a gap is None."""

    unit: str
    value: tuple[float | None, ...]
    target: tuple[float | None, ...]
    up: tuple[float | None, ...]
    down: tuple[float | None, ...]


class Track(JsonView):
    """An HPA over time, one entry per decision."""

    at: tuple[float, ...] = ()
    current: tuple[int, ...] = ()
    desired: tuple[int, ...] = ()
    asked: tuple[int | None, ...] = ()
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    metrics: tuple[MetricTrack, ...] = ()


class HorizontalPage(JsonView):
    """Everything about one HPA."""

    row: HorizontalRow
    story: DecisionView | None
    pods: tuple[PodView, ...] = ()
    pods_total: int = 0
    events: tuple[EventView, ...] = ()
    conditions: tuple[ConditionView, ...] = ()
    track: Track = Track()
    problem: str = ""
    """Why the spec cannot be decided on."""
    notice: str = ""
    """Why this program cannot decide, and what the operator last decided by the HPA's status."""
    spec: dict[str, object] = msgspec.field(default_factory=dict)
    """The spec as JSON, from which the what-if form starts."""
    honours_tolerance: bool = True
    """Whether the gate is on under which `tolerance` counts."""
    owners_unknown: str = ""
    """Why the what-if cannot count pods by owner; empty if it can."""


class BucketView(JsonView):
    """A bar of a usage histogram."""

    start: float
    end: float
    weight: float


class AmountView(JsonView):
    """One resource of one container: history, recommendation and what led to it."""

    container: str
    resource: str
    unit: str
    lower: float | None = None
    target: float | None = None
    upper: float | None = None
    uncapped: float | None = None
    lower_text: str = ""
    target_text: str = ""
    upper_text: str = ""
    samples: int = 0
    histogram: tuple[BucketView, ...] = ()
    requests: tuple[tuple[str, float], ...] = ()
    """What each pod under its control requests now."""
    reasons: tuple[str, ...] = ()


class SizedPod(JsonView):
    """A pod of the target: who controls it, whom it teaches, and what comes next."""

    name: str
    controlled_by: str
    reason: str
    is_ours: bool
    teaches: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    update: str = ""
    """What the last update loop did with it, or why it left it alone."""


class VerticalPage(JsonView):
    """Everything about one VPA."""

    row: VerticalRow
    level: int = 0
    amounts: tuple[AmountView, ...] = ()
    pods: tuple[SizedPod, ...] = ()
    pods_total: int = 0
    cuts: tuple[str, ...] = ()
    conditions: tuple[ConditionView, ...] = ()
    events: tuple[EventView, ...] = ()


class Notice(JsonView):
    """Something about the program itself that every viewer should know."""

    text: str
    is_problem: bool = False


class Overview(JsonView):
    """All autoscalers."""

    horizontal: tuple[HorizontalRow, ...]
    vertical: tuple[VerticalRow, ...]
    notices: tuple[Notice, ...] = ()


class LoadView(JsonView):
    """A load that a person can turn up and down."""

    name: str
    title: str
    factor: float
    detail: str = ""
