"""Is a VPAScope acceptable? Its two selectors must be selectors."""

from collections.abc import Iterator

from trimtab.model.fielderror import FieldError, FieldPath, invalid
from trimtab.model.selector import LabelSelector, Selector, SelectorError
from trimtab.model.vpa.types import VPAScope

_SPEC = FieldPath("spec")


def validate_scope(scope: VPAScope) -> list[FieldError]:
    """Check one VPAScope; every mistake is reported at the selector that it spoils."""
    selectors = {"nodeSelector": scope.spec.node_selector, "podSelector": scope.spec.pod_selector}
    return [
        invalid(_SPEC.child(name), part, problem)
        for name, selector in selectors.items()
        if selector is not None
        for part, problem in _problems(selector)
    ]


def _problems(selector: LabelSelector) -> Iterator[tuple[str, str]]:
    """Yield the parts that cannot be compiled; one by one, so that the first does not hide the next."""
    parts = {
        f"matchLabels[{key}]": LabelSelector(match_labels={key: value})
        for key, value in selector.match_labels.items()
    }
    for position, expression in enumerate(selector.match_expressions):
        parts[f"matchExpressions[{position}]"] = LabelSelector(match_expressions=(expression,))
    for name, part in parts.items():
        try:
            Selector.from_label_selector(part)
        except SelectorError as error:
            yield name, str(error)
