"""How old a metric's samples may be: the rules of `maxAgeSeconds`, and where a native HPA carries it.

The operator's flags have one limit for all sources. Some sources are minutes behind by nature, as those of clouds, and
some must not be: the metric says so itself.
"""

from typing import Any

from trimtab.model.field_errors import FieldError, FieldPath, invalid
from trimtab.model.hpa.metric_fields.metric_annotation import MetricAnnotation
from trimtab.model.json import shape

MOST_SECONDS = 86_400
"""A number that is a day old says nothing about the load of now."""


def validate_max_age(seconds: int, path: FieldPath) -> list[FieldError]:
    """Check the limit of one metric."""
    if 1 <= seconds <= MOST_SECONDS:
        return []
    return [invalid(path, seconds, f"must be between 1 and {MOST_SECONDS}")]


def _read(path: FieldPath, content: Any) -> int | list[FieldError]:
    errors = shape.misfits(content, int, path)
    return errors or validate_max_age(content, path) or int(content)


MAX_AGE = MetricAnnotation[int](
    name="autoscaling.trimtab.dev/max-age-seconds",
    field="maxAgeSeconds",
    attribute="max_age_seconds",
    values="seconds",
    consequence="the operator's limits hold for every metric",
    read=_read,
)
"""The annotation of native HPAs: `{"sqs_messages": 600}`."""
