"""The rules of a reference to another object: scaleTargetRef and the object that a metric describes."""

from dataclasses import dataclass

from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.field_errors import FieldError, FieldPath, invalid, required
from trimtab.model.labels import names


@dataclass(frozen=True)
class ReferenceOptions:
    """How strictly an apiVersion is read; older objects were accepted with less and must stay editable."""

    allow_empty_api_group: bool = False
    allow_invalid_api_version: bool = False


def validate_reference(
    ref: CrossVersionObjectReference, path: FieldPath, options: ReferenceOptions
) -> list[FieldError]:
    """Check kind, name and apiVersion."""
    errors = []
    for name, text in {"kind": ref.kind, "name": ref.name}.items():
        if text:
            errors += [invalid(path.child(name), text, complaint) for complaint in names.path_segment(text)]
        else:
            errors.append(required(path.child(name)))
    if complaint := api_version_complaint(ref.api_version, options):
        errors.append(invalid(path.child("apiVersion"), ref.api_version, complaint))
    return errors


def api_version_complaint(api_version: str, options: ReferenceOptions) -> str:
    """Say what is wrong with an apiVersion; nothing if it is fine or not looked at."""
    if options.allow_invalid_api_version:
        return ""
    if api_version.count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    if not api_version.rpartition("/")[0] and not options.allow_empty_api_group:
        return "apiVersion must specify API group"
    return ""
