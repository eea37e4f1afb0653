"""Fields and annotations of an HPA that have no effect."""

from collections.abc import Iterator, Mapping

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.plugin_answers import unread_policies
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.status.conditions import (
    FIELDS_IGNORED,
    EmitEvent,
    RemoveCondition,
    SetCondition,
    StatusChange,
)
from trimtab.model.core.meta import group_of
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.annotations import misplaced_annotations, misspelt_annotations
from trimtab.model.hpa.metric_annotations import MAX_AGE, METRIC_ANNOTATIONS, ON_LOSS, MetricAnnotationError
from trimtab.model.hpa.selection_strategy import NATIVE_GROUP
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    SelectionStrategy,
)
from trimtab.model.json.wire import Wire

SCALE_TO_ZERO = "HPAScaleToZero"
SELECTION = "HPASelectionStrategy"
TOLERANCE = "HPAConfigurableTolerance"
GATE_OFF = "FeatureGateDisabled"
MISSPELT = "MisspeltAnnotation"
MISPLACED = "MisplacedAnnotation"
COUNTS_AS_ONE = "it counts as 1, and what is at zero stays there"


class IgnoredField(Wire):
    """A field that has no effect."""

    field: str
    value: str
    gate: str
    instead: str
    """What counts in its place."""

    def __str__(self) -> str:
        return f"{self.field}: {self.value} has no effect while the feature gate {self.gate} is off: {self.instead}"


def ignored_fields(
    spec: HorizontalPodAutoscalerSpec, gates: FeatureGates, rules: Rules
) -> tuple[IgnoredField, ...]:
    """Return the fields that are set but have no effect, because their feature gate is off."""
    # Nearly every HPA has none of these fields, and every decision calls this.
    if spec.min_replicas != 0 and spec.selection_strategy is None and spec.behavior is None:
        return ()
    return tuple(_ignored(spec, gates, rules))


def _ignored(spec: HorizontalPodAutoscalerSpec, gates: FeatureGates, rules: Rules) -> Iterator[IgnoredField]:
    if spec.min_replicas == 0 and not gates.hpa_scale_to_zero and rules.ours:
        yield IgnoredField(field="spec.minReplicas", value="0", gate=SCALE_TO_ZERO, instead=COUNTS_AS_ONE)
    strategy = spec.selection_strategy
    if strategy not in {None, SelectionStrategy.LABEL_SELECTOR} and not gates.hpa_selection_strategy:
        yield IgnoredField(
            field="spec.selectionStrategy",
            value=str(strategy),
            gate=SELECTION,
            instead="pods are counted by LabelSelector",
        )
    if spec.behavior is None or gates.hpa_configurable_tolerance:
        return
    for name, scaling in (("scaleUp", spec.behavior.scale_up), ("scaleDown", spec.behavior.scale_down)):
        if scaling is not None and scaling.tolerance is not None:
            yield IgnoredField(
                field=f"spec.behavior.{name}.tolerance",
                value=str(scaling.tolerance),
                gate=TOLERANCE,
                instead="the tolerance of the operator counts",
            )


def ignored_fields_changes(observation: Observation, before: Mapping[str, str]) -> tuple[StatusChange, ...]:
    """Return the condition that names the fields without effect, or its removal."""
    if not observation.rules.ours:
        return ()
    hpa = observation.hpa
    fields = ignored_fields(hpa.spec, observation.gates, observation.rules)
    annotations = _without_effect(hpa) if hpa.metadata.annotations else []
    if fields or annotations:
        message = "; ".join([*map(str, fields), *(text for _, text in annotations)])
        reason = GATE_OFF if fields else annotations[0][0]
        return (SetCondition(FIELDS_IGNORED, "True", reason, message),)
    return (RemoveCondition(FIELDS_IGNORED),) if before.get(FIELDS_IGNORED) == "True" else ()


_REASONS = {ON_LOSS.name: "InvalidLossPolicy", MAX_AGE.name: "InvalidMaxAge"}


def ignored_annotations_changes(observation: Observation) -> list[StatusChange]:
    """Return an event for each annotation that is ignored because its name, place or value is wrong."""
    hpa = observation.hpa
    if not hpa.metadata.annotations:
        return []
    found = [(_REASONS[name], _is_ignored(name, error)) for name, error in _wrong_values(hpa)]
    found += _without_effect(hpa) if observation.rules.ours else []
    return [EmitEvent("Warning", reason, message, is_limited=True) for reason, message in found]


def ignored_annotations(hpa: HorizontalPodAutoscaler) -> tuple[str, ...]:
    """Return which annotations have no effect, and why."""
    wrong = (_is_ignored(name, error) for name, error in _wrong_values(hpa))
    return (*wrong, *(message for _, message in _without_effect(hpa)))


def unreadable_annotations(hpa: HorizontalPodAutoscaler) -> tuple[str, ...]:
    """Return which annotations have values that cannot be used, and why."""
    policies = unread_policies(hpa) if _is_native(hpa) else ()
    wrong = (f"annotation {name} cannot be read: {error}" for name, error in _wrong_values(hpa))
    return (*wrong, *(answer.failure for answer in policies))


def _is_ignored(name: str, error: str) -> str:
    return f"annotation {name} is ignored: {error}"


def _without_effect(hpa: HorizontalPodAutoscaler) -> list[tuple[str, str]]:
    """Return the reason and the message of each annotation that is misspelt, or not for this kind."""
    annotations = hpa.metadata.annotations
    found = [(MISSPELT, message) for message in misspelt_annotations(annotations).values()]
    if not _is_native(hpa):
        found += [(MISPLACED, message) for message in misplaced_annotations(annotations).values()]
    return found


def _is_native(hpa: HorizontalPodAutoscaler) -> bool:
    return group_of(hpa.api_version) == NATIVE_GROUP


def _wrong_values(hpa: HorizontalPodAutoscaler) -> Iterator[tuple[str, str]]:
    """Yield name and error of each annotation of a native HPA whose value cannot be used."""
    if not _is_native(hpa):
        return
    annotations, metrics = hpa.metadata.annotations, hpa.spec.metrics
    for field in METRIC_ANNOTATIONS:
        text = annotations.get(field.name)
        if not text:
            continue
        try:
            field.parse_values(text, metrics)
        except MetricAnnotationError as error:
            yield field.name, str(error)
