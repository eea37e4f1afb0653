"""Builds PromQL from a rule's template and the selectors of a metric query.

What a user can choose (names and label values) becomes quoted matchers only, so it cannot change the shape of a query.
Several matchers of one label must all match, so a selector only narrows the authorized namespace (S14).
"""

import re
from collections.abc import Collection, Mapping

from trimtab.adapter.errors import BadRequest
from trimtab.model.labels.selector import Requirement, Selector

SERIES, MATCHERS, GROUP_BY = "series", "matchers", "groupBy"

_TOKEN = re.compile(r"<<\s*([^<>]*?)\s*>>")
_NAMES = {
    "series": SERIES,
    "matchers": MATCHERS,
    "groupBy": GROUP_BY,
    # The names of prometheus-adapter, so that its queries work unchanged.
    ".Series": SERIES,
    ".LabelMatchers": MATCHERS,
    ".GroupBy": GROUP_BY,
}
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z", re.ASCII)
_METACHARACTER = re.compile(r"([^a-zA-Z0-9_])", re.ASCII)


class TemplateError(ValueError):
    """A query template is invalid."""


def check_template(template: str) -> None:
    """Reject a template with unknown parts or without the selectors."""
    names = {match[1] for match in _TOKEN.finditer(template)}
    unknown = sorted(names - set(_NAMES))
    if unknown:
        raise TemplateError(
            f"query: unknown part <<{unknown[0]}>>; known: <<series>>, <<matchers>>, <<groupBy>>"
        )
    if MATCHERS not in {_NAMES[name] for name in names}:
        raise TemplateError("query: has no <<matchers>>, so every namespace would see every series; add it")


def fill(template: str, series: str, matchers: str, group_by: str) -> str:
    """Return the query of a template with its parts filled in."""
    parts = {SERIES: series, MATCHERS: matchers, GROUP_BY: group_by}
    return _TOKEN.sub(lambda match: parts[_NAMES[match[1]]], template)


def join(*matchers: str) -> str:
    """Join matchers, without empty ones, to one list."""
    return ",".join(matcher for matcher in matchers if matcher)


def equals(label: str, value: str) -> str:
    """Return the matcher for one value."""
    return f"{label}={quote(value)}"


def one_of(label: str, values: Collection[str]) -> str:
    """Return the matcher for any of the values."""
    if len(values) == 1:
        return equals(label, next(iter(values)))
    return f"{label}=~{quote('|'.join(_literal(value) for value in sorted(values)))}"


def from_selector(selector: Selector) -> str:
    """Return the matchers of a label selector."""
    return ",".join(_matcher(requirement) for requirement in selector.requirements)


def from_labels(labels: Mapping[str, str]) -> str:
    """Return the matchers of fixed labels."""
    return ",".join(equals(name, value) for name, value in sorted(labels.items()))


def is_label(name: str) -> bool:
    """Return whether a name can be a label in Prometheus."""
    return bool(_LABEL.match(name))


def quote(text: str) -> str:
    """Return a PromQL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _matcher(requirement: Requirement) -> str:
    label = requirement.key
    if not is_label(label):
        raise BadRequest(f"metricLabelSelector: {label!r} cannot be a label of a Prometheus series")
    match requirement.operator:
        case "=" | "==" | "in":
            return one_of(label, requirement.values)
        case "!=" | "notin":
            return f"{label}!~{quote('|'.join(_literal(value) for value in requirement.values))}"
        case "exists":
            return f'{label}!=""'
        case "!":
            return f'{label}=""'
        case _:
            raise BadRequest(
                f"metricLabelSelector: Prometheus cannot compare labels as numbers ({requirement})"
            )


def _literal(text: str) -> str:
    return _METACHARACTER.sub(r"\\\1", text)
