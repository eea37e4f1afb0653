"""Label maps outside metadata: templates and selectors."""

from trimtab.lab.codec import JsonObject
from trimtab.lab.errors import invalid_value
from trimtab.model.field_errors import FieldError
from trimtab.model.labels import names


def validate_labels(labels: JsonObject | None, path: str) -> list[FieldError]:
    """Return what is wrong with a label map."""
    found: list[FieldError] = []
    for key, value in (labels or {}).items():
        found += [invalid_value(path, key, complaint) for complaint in names.label_key(key)]
        found += [invalid_value(path, value, complaint) for complaint in names.label_value(str(value))]
    return found
