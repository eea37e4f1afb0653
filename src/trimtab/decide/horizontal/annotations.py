"""Tells of annotations that stand for fields of metrics and cannot be used."""

from trimtab.decide.horizontal.draft import Draft
from trimtab.model.hpa.metric_fields.metric_annotation import MetricAnnotationError
from trimtab.model.hpa.metric_fields.on_loss import ON_LOSS
from trimtab.model.hpa.metric_fields.own_fields import OWN_METRIC_FIELDS
from trimtab.model.hpa.metric_fields.sample_age import MAX_AGE

_REASONS = {ON_LOSS.name: "InvalidLossPolicy", MAX_AGE.name: "InvalidMaxAge"}


def tell_wrong_annotations(draft: Draft) -> None:
    """Warn of each annotation that is ignored because it is wrong."""
    annotations, metrics = draft.seen.hpa.metadata.annotations, draft.seen.hpa.spec.metrics
    if not annotations:
        return
    for own in OWN_METRIC_FIELDS:
        text = annotations.get(own.name)
        if not text or any(getattr(metric, own.attribute) is not None for metric in metrics):
            continue  # absent, or taken into the spec
        try:
            own.values_of(text, metrics)
        except MetricAnnotationError as error:
            if draft.may_repeat(_REASONS[own.name]):
                draft.warn(_REASONS[own.name], f"annotation {own.name} is ignored: {error}")
