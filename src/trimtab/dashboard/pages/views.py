"""The values of all pages: the JSON that the server sends and the scripts draw.

They are built from what `trimtab.decide` returned. Nothing is decided here.
"""

from typing import dataclass_transform

import msgspec


# For type checkers: subclasses are frozen too.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class JsonView(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """A value for the page. Every field is sent, also zeros, because the scripts read all fields."""


class ReadingView(JsonView):
    """The last value of one metric beside its target, as text in the same unit."""

    name: str
    value: str
    target: str
    is_per_pod: bool = False
    ratio: float | None = None
    """Value by target, to sort by."""
    is_out: bool = False
    """Whether the value asks for other replicas, or cannot be read."""


class HorizontalRow(JsonView):
    """One HPA in the overview."""

    id: str
    """`hpa/namespace/name`, or `native/namespace/name` for an HPA of autoscaling/v2."""
    namespace: str
    name: str
    target: str
    low: int
    high: int
    current: int | None = 0
    """None if the target cannot be read."""
    desired: int | None = 0
    state: str = "waiting"
    """scaling, steady, held, paused, problem or waiting."""
    reason: str = ""
    summary: str = "no decision yet"
    metrics: tuple[ReadingView, ...] = ()
    at: float = 0.0
    """The time of the last decision, in seconds since 1970."""
    is_dry_run: bool = False
    is_short: bool = False
    """Whether it is held below the replicas that its metrics ask for."""


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
    """The recommended targets, abbreviated."""


Row = HorizontalRow | VerticalRow


class MetricView(JsonView):
    """One metric of a decision, in words and as numbers in its own unit."""

    name: str
    """The type of the metric and of its number."""
    label: str
    """The name of the resource or metric."""
    type: str
    unit: str = ""
    """`%`, `cores`, `bytes` or nothing."""
    is_per_pod: bool = False
    """Whether the numbers are an average over the pods."""
    value: float | None = None
    target: float | None = None
    up: float | None = None
    """Above this value the metric asks for more replicas."""
    down: float | None = None
    """At or below this value the metric asks for fewer replicas."""
    value_text: str = ""
    per_pod_text: str = ""
    """The average amount per pod behind a percentage."""
    total_text: str = ""
    """The amount of all measured pods together, unless the value contains it."""
    target_text: str = ""
    up_text: str = ""
    down_text: str = ""
    ratio: float | None = None
    replicas: int | None = None
    is_winner: bool = False
    problem: str = ""
    fallback: str = ""
    """What the metric counts as while it cannot be read, if it has a loss policy."""
    notes: tuple[str, ...] = ()


class PolicyView(JsonView):
    """The rules of one direction, and what they allow now."""

    window_seconds: float
    select: str
    policies: tuple[str, ...]
    allowed: int
    """The replicas that one sync may reach now, within the bounds."""


class DecisionView(JsonView):
    """One decision with its explanation."""

    reason: str
    state: str
    summary: str
    next_step: str
    more: str
    """Why not more replicas, in words."""
    less: str
    """Why not fewer replicas, in words."""
    current: int | None
    """None if the target cannot be read."""
    desired: int | None
    asked: int | None
    low: int
    high: int
    strategy: str
    counted: int | None
    """None if the decision ended before pods were selected."""
    left_out: int
    extra: int
    """Counted pods that do not belong to the target."""
    fallback: str
    limit: str
    ignored: tuple[str, ...]
    """Fields of the spec without effect, because their feature gate is off."""
    policies: tuple[str, ...]
    """What each replica policy asks for, and why, in a line."""
    tolerance_up: float
    tolerance_down: float
    metrics: tuple[MetricView, ...]
    up: PolicyView
    down: PolicyView
    window: tuple[tuple[float, int], ...]
    """Remembered recommendations: time and replicas."""


class WhatIfView(JsonView):
    """The decision on edited input, and how to make the edits of the spec."""

    decision: DecisionView
    patch: str = ""
    """The command that edits the spec of the HPA, or an empty text if only its input was edited."""


class PodView(JsonView):
    """A pod that matches the selector: whether it counts, and its samples."""

    name: str
    phase: str
    is_ready: bool
    is_counted: bool
    is_foreign: bool = False
    """Whether it counts although the target does not own it."""
    reason: str = ""
    samples: tuple[str, ...] = ()
    """One per metric, empty if the metric has no sample of this pod."""


class EventView(JsonView):
    """An event of an autoscaler, or of a pod that it sizes."""

    at: float
    type: str
    reason: str
    message: str
    pod: str = ""
    """The pod that it is about; empty if it is about the autoscaler itself."""


class ConditionView(JsonView):
    """A condition of a status."""

    type: str
    status: str
    reason: str
    message: str
    since: float | None


class MetricTrack(JsonView):
    """A metric over time, with None in gaps."""

    unit: str
    value: tuple[float | None, ...]
    target: tuple[float | None, ...]
    up: tuple[float | None, ...]
    down: tuple[float | None, ...]


class Track(JsonView):
    """An HPA over time, one entry per decision."""

    at: tuple[float, ...] = ()
    current: tuple[int | None, ...] = ()
    """None where the target could not be read."""
    desired: tuple[int | None, ...] = ()
    asked: tuple[int | None, ...] = ()
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    metrics: tuple[MetricTrack, ...] = ()


class HorizontalPage(JsonView):
    """The page of one HPA."""

    row: HorizontalRow
    decision: DecisionView | None
    pods: tuple[PodView, ...] = ()
    pods_total: int = 0
    events: tuple[EventView, ...] = ()
    conditions: tuple[ConditionView, ...] = ()
    track: Track = Track()
    problem: str = ""
    """Why the spec is invalid."""
    notice: str = ""
    """Why this process cannot decide, and the operator's last decision from the HPA's status."""
    spec: dict[str, object] = msgspec.field(default_factory=dict)
    """The spec as JSON, the initial state of the what-if form."""
    honours_tolerance: bool = True
    """Whether the feature gate of `tolerance` is on."""
    owners_unknown: str = ""
    """Why the what-if cannot count pods by owner, or an empty text."""
    shows_pods: bool = True
    shows_events: bool = True
    hidden: tuple[str, ...] = ()
    """The parts that the viewer may not see, each with the missing right."""


class BucketView(JsonView):
    """A bar of a usage histogram."""

    start: float
    end: float
    weight: float


class AmountView(JsonView):
    """One resource of one container: usage, recommendation and its derivation."""

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
    """The current request of each controlled pod."""
    reasons: tuple[str, ...] = ()


class SizedPod(JsonView):
    """A pod of the target: the VPA that controls it, the VPAs it feeds, and its next update."""

    name: str
    controlled_by: str
    reason: str
    is_ours: bool
    teaches: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    update: str = ""
    """What the last update loop did with the pod, or why it skipped it."""


class VerticalPage(JsonView):
    """The page of one VPA."""

    row: VerticalRow
    level: int = 0
    amounts: tuple[AmountView, ...] = ()
    pods: tuple[SizedPod, ...] = ()
    pods_total: int = 0
    cuts: tuple[str, ...] = ()
    requests: str = ""
    """The targets as `containers` of a pod template, as YAML to copy."""
    conditions: tuple[ConditionView, ...] = ()
    events: tuple[EventView, ...] = ()
    shows_pods: bool = True
    shows_events: bool = True
    shows_usage: bool = True
    """Whether the usage history and the derivations are part of the page."""
    hidden: tuple[str, ...] = ()
    """The parts that the viewer may not see, each with the missing right."""


class Notice(JsonView):
    """A notice about the program itself for every viewer."""

    text: str
    is_problem: bool = False
    details: tuple[str, ...] = ()
    """Messages behind the text, which the page folds."""


class KindView(JsonView):
    """What the overview says about all HPAs or all VPAs."""

    is_read: bool = True
    """Whether they could be listed. If not, no rows do not mean no objects."""
    is_served: bool = True
    """Whether the cluster serves the kind. If not, there is nothing to count."""
    hint: str = ""
    """What to do next if there are none."""


class ProgramView(JsonView):
    """What the program can read, for every viewer."""

    notices: tuple[Notice, ...] = ()
    data_at: float | None = None
    """The time of the last answer, in seconds since 1970, if the cluster cannot be reached. Zero if there was none."""
    is_operator_gone: bool = False
    """Whether an operator in another process does not run any more, so that decisions are not carried out."""
    horizontal: KindView = KindView()
    vertical: KindView = KindView()


class Overview(JsonView):
    """The autoscalers that a viewer may see."""

    horizontal: tuple[HorizontalRow, ...]
    vertical: tuple[VerticalRow, ...]
    program: ProgramView = ProgramView()
    horizontal_limit: str = ""
    """Which HPAs are shown, if the viewer may not see all."""
    vertical_limit: str = ""
    """Which VPAs are shown, if the viewer may not see all."""


class Changes(JsonView):
    """The changes of an overview: new and changed rows, and the ids of rows that are gone."""

    horizontal: tuple[HorizontalRow, ...] = ()
    vertical: tuple[VerticalRow, ...] = ()
    removed: tuple[str, ...] = ()
    program: ProgramView | None = None
    """What the program can read, or None if that did not change."""


class StoryView(JsonView):
    """An example in its own namespace: what it shows, and a command to try."""

    namespace: str
    title: str
    see: str
    command: str


class LoadView(JsonView):
    """A load that a viewer can change."""

    name: str
    title: str
    factor: float
    detail: str = ""
