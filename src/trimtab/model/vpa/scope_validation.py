"""Is a VPAScope acceptable? Its two selectors must be selectors."""

from trimtab.model.fielderror import FieldError, FieldPath, invalid
from trimtab.model.selector_validation import selector_problems
from trimtab.model.vpa.types import VPAScope

_SPEC = FieldPath("spec")


def validate_scope(scope: VPAScope) -> list[FieldError]:
    """Check one VPAScope; every mistake is reported at the selector that it spoils."""
    selectors = {"nodeSelector": scope.spec.node_selector, "podSelector": scope.spec.pod_selector}
    return [
        invalid(_SPEC.child(name), part, problem)
        for name, selector in selectors.items()
        if selector is not None
        for part, problem in selector_problems(selector)
    ]
