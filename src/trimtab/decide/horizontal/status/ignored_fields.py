"""Fields and annotations of an HPA that have no effect, and those that let it scale nothing."""

from collections.abc import Iterator

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.plugin_answers import unread_policies
from trimtab.decide.horizontal.reasons import SCALE_TO_ZERO, SELECTION, TOLERANCE
from trimtab.decide.horizontal.rules import Rules
from trimtab.model.core.meta import group_of
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.annotations import misplaced_annotations, misspelt_annotations
from trimtab.model.hpa.dry_run import MODE_ANNOTATION, is_dry_run, mode_problem
from trimtab.model.hpa.metric_annotations import MAX_AGE, METRIC_ANNOTATIONS, ON_LOSS, MetricAnnotationError
from trimtab.model.hpa.selection_strategy import NATIVE_GROUP, strategy_problem
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    SelectionStrategy,
)
from trimtab.model.json.wire import Wire

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


def ignored_minimum(seen: Observation) -> str:
    """Return why a minimum of 0 ends at 1 replica, or an empty text if the minimum is not 0."""
    ignored = ignored_fields(seen.hpa.spec, seen.gates, seen.rules)
    return next((str(field) for field in ignored if field.gate == SCALE_TO_ZERO), "")


def ignored_fields_condition(seen: Observation) -> tuple[str, str]:
    """Return the reason and the message of the condition that names fields without effect, or empty texts."""
    hpa = seen.hpa
    fields = ignored_fields(hpa.spec, seen.gates, seen.rules)
    annotations = _without_effect(hpa) if hpa.metadata.annotations else []
    if not fields and not annotations:
        return "", ""
    message = "; ".join([*map(str, fields), *(text for _, text in annotations)])
    return GATE_OFF if fields else annotations[0][0], message


_REASONS = {ON_LOSS.name: "InvalidLossPolicy", MAX_AGE.name: "InvalidMaxAge"}


def ignored_annotation_events(seen: Observation) -> list[tuple[str, str]]:
    """Return reason and message of each annotation that is ignored because its name, place or value is wrong."""
    if not seen.hpa.metadata.annotations:
        return []
    found = [(_REASONS[name], _is_ignored(name, error)) for name, error in _wrong_values(seen.hpa)]
    return [*found, *_without_effect(seen.hpa)] if seen.rules.ours else found


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


def annotation_problem(hpa: HorizontalPodAutoscaler, gates: FeatureGates) -> str:
    """Return which annotation is misspelt or contradicts another, or an empty text.

    The HPA does not scale before the annotation is corrected.
    """
    problem = mode_problem(hpa.metadata.annotations.get(MODE_ANNOTATION, ""))
    if problem or not gates.hpa_selection_strategy:
        return problem
    return strategy_problem(hpa.metadata.annotations, hpa.spec.selection_strategy)


def must_not_scale(hpa: HorizontalPodAutoscaler, gates: FeatureGates) -> bool:
    """Return whether an HPA asks for a dry run, or has an annotation that might."""
    return is_dry_run(hpa) or bool(annotation_problem(hpa, gates))
