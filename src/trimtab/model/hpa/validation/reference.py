"""Rules of references: `scaleTargetRef`, and the object that a metric describes."""

from dataclasses import dataclass

from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.field_errors import FieldError, FieldPath, invalid
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
    errors = names.check_name(ref.kind, path.child("kind"), names.path_segment_problems, "")
    errors += names.check_name(ref.name, path.child("name"), names.path_segment_problems, "")
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
