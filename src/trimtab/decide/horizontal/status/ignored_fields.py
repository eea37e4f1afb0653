"""Fields of an HPA that a feature gate that is off leaves without effect."""

from collections.abc import Iterator

from trimtab.decide.horizontal.config import HpaCompat
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.status.builder import DecisionBuilder
from trimtab.decide.horizontal.status.conditions import FIELDS_IGNORED, Conditions
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.metric_annotations import MAX_AGE, METRIC_ANNOTATIONS, ON_LOSS, MetricAnnotationError
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, SelectionStrategy
from trimtab.model.json.wire import Wire

SCALE_TO_ZERO = "HPAScaleToZero"
SELECTION = "HPASelectionStrategy"
TOLERANCE = "HPAConfigurableTolerance"
GATE_OFF = "FeatureGateDisabled"
COUNTS_AS_ONE = "it counts as 1, and what is at zero stays there"


class Ignored(Wire):
    """A field that has no effect."""

    field: str
    value: str
    gate: str
    instead: str
    """What counts in its place."""

    def __str__(self) -> str:
        return f"{self.field}: {self.value} has no effect while the feature gate {self.gate} is off: {self.instead}"


def ignored_fields(
    spec: HorizontalPodAutoscalerSpec, gates: FeatureGates, compat: HpaCompat
) -> tuple[Ignored, ...]:
    """Return the fields that are set and that gates that are off leave without effect."""
    # Nearly every HPA has none of these fields, and nearly every decision asks.
    if spec.min_replicas != 0 and spec.selection_strategy is None and spec.behavior is None:
        return ()
    return tuple(_ignored(spec, gates, compat))


def _ignored(spec: HorizontalPodAutoscalerSpec, gates: FeatureGates, compat: HpaCompat) -> Iterator[Ignored]:
    if spec.min_replicas == 0 and not gates.hpa_scale_to_zero and compat.floor_one_while_gate_off:
        yield Ignored(field="spec.minReplicas", value="0", gate=SCALE_TO_ZERO, instead=COUNTS_AS_ONE)
    strategy = spec.selection_strategy
    if strategy not in {None, SelectionStrategy.LABEL_SELECTOR} and not gates.hpa_selection_strategy:
        yield Ignored(
            field="spec.selectionStrategy",
            value=str(strategy),
            gate=SELECTION,
            instead="pods are counted by LabelSelector",
        )
    if spec.behavior is None or gates.hpa_configurable_tolerance:
        return
    for name, rules in (("scaleUp", spec.behavior.scale_up), ("scaleDown", spec.behavior.scale_down)):
        if rules is not None and rules.tolerance is not None:
            yield Ignored(
                field=f"spec.behavior.{name}.tolerance",
                value=str(rules.tolerance),
                gate=TOLERANCE,
                instead="the tolerance of the operator counts",
            )


def set_fields_ignored(conditions: Conditions, seen: Observation) -> None:
    """Set the condition that names the fields without effect, or remove it if there is none."""
    if not seen.compat.tell_ignored_fields:
        return
    found = ignored_fields(seen.hpa.spec, seen.gates, seen.compat)
    if found:
        conditions.set(FIELDS_IGNORED, "True", GATE_OFF, "; ".join(map(str, found)))
    elif conditions.is_true(FIELDS_IGNORED):
        conditions.remove(FIELDS_IGNORED)


_REASONS = {ON_LOSS.name: "InvalidLossPolicy", MAX_AGE.name: "InvalidMaxAge"}


def tell_wrong_annotations(draft: DecisionBuilder) -> None:
    """Warn of each annotation that is ignored because it is wrong."""
    annotations, metrics = draft.seen.hpa.metadata.annotations, draft.seen.hpa.spec.metrics
    if not annotations:
        return
    for own in METRIC_ANNOTATIONS:
        text = annotations.get(own.name)
        if not text or any(getattr(metric, own.attribute) is not None for metric in metrics):
            continue  # absent, or taken into the spec
        try:
            own.parse_values(text, metrics)
        except MetricAnnotationError as error:
            if draft.may_repeat(_REASONS[own.name]):
                draft.warn(_REASONS[own.name], f"annotation {own.name} is ignored: {error}")
