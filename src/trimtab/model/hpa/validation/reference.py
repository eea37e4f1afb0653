"""Rules of references: `scaleTargetRef`, and the object that a metric describes."""

from dataclasses import dataclass

from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.field_errors import FieldError, FieldPath, invalid, required
from trimtab.model.labels import names


@dataclass(frozen=True)
class ReferenceOptions:
    """How strictly an apiVersion is checked, so that older objects stay editable."""

    allow_empty_api_group: bool = False
    allow_invalid_api_version: bool = False


def validate_reference(
    ref: CrossVersionObjectReference, path: FieldPath, options: ReferenceOptions
) -> list[FieldError]:
    """Check kind, name and apiVersion."""
    errors = []
    for name, text in {"kind": ref.kind, "name": ref.name}.items():
        if text:
            errors += [
                invalid(path.child(name), text, problem) for problem in names.path_segment_problems(text)
            ]
        else:
            errors.append(required(path.child(name)))
    if problem := api_version_problem(ref.api_version, options):
        errors.append(invalid(path.child("apiVersion"), ref.api_version, problem))
    return errors


def api_version_problem(api_version: str, options: ReferenceOptions) -> str:
    """Return the problem with an apiVersion, empty if the options allow it."""
    if options.allow_invalid_api_version:
        return ""
    if api_version.count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    if not api_version.rpartition("/")[0] and not options.allow_empty_api_group:
        return "apiVersion must specify API group"
    return ""
