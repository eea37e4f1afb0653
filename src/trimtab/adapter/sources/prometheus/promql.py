"""Builds PromQL from a rule's template and the selectors of a metric query.

What a user can choose (names of series, names of objects, label values) becomes quoted matchers only, so it cannot change
the shape of a query. Several matchers of one label must all match, so a selector only narrows the authorized namespace (S14).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from trimtab.model.labels.selector import Requirement, Selector
from trimtab.model.status import StatusError

SERIES, MATCHERS, GROUP_BY = "series", "matchers", "groupBy"

_NAMES = {
    "series": SERIES,
    "matchers": MATCHERS,
    "groupBy": GROUP_BY,
    # The names of prometheus-adapter, so that its queries work unchanged.
    ".Series": SERIES,
    ".LabelMatchers": MATCHERS,
    ".GroupBy": GROUP_BY,
}
_PLACEHOLDER = re.compile(r"<<\s*([^<>]*?)\s*>>(\s*\{)?")
_LEXEME = re.compile(
    r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`|\#[^\n]*)|<<[^<>]*>>|.""", re.DOTALL
)
"""A string or a comment (the group), a placeholder, or a single character."""

_SIMPLE_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z", re.ASCII)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z", re.ASCII)
_METACHARACTER = re.compile(r"([^a-zA-Z0-9_])", re.ASCII)


class TemplateError(ValueError):
    """A query template is invalid."""


@dataclass(frozen=True, slots=True)
class Template:
    """A query with placeholders.

    `takes_quoted_names` says that each <<series>> is directly before `{`, where a matcher can replace the name.
    """

    text: str
    takes_quoted_names: bool

    def takes(self, series: str) -> bool:
        """Return whether the query can contain this name of a series without changing its shape."""
        return is_simple_name(series) or (self.takes_quoted_names and series.isprintable() and bool(series))

    def fill(self, series: str, matchers: str, group_by: str) -> str:
        """Return the query. Raise TemplateError for a series that it cannot take."""
        if not self.takes(series):
            raise TemplateError(f"query: cannot contain a series called {series!r}")
        parts = {SERIES: series, MATCHERS: matchers, GROUP_BY: group_by}

        def part(match: re.Match[str]) -> str:
            name, brace = _NAMES[match[1]], match[2] or ""
            if name == SERIES and not is_simple_name(series):
                # Since Prometheus 3 any text is a name, and the owner of a pod chooses the names of its series.
                return "{" + equals("__name__", series) + ","
            return parts[name] + brace

        # A single pass, because the name of a series may look like a placeholder.
        return _PLACEHOLDER.sub(part, self.text)


def parse_template(text: str) -> Template:
    """Parse a template. Raise TemplateError for unknown placeholders and for selectors that would not apply."""
    names = {match[1] for match in _PLACEHOLDER.finditer(text)}
    unknown = sorted(names - set(_NAMES))
    if unknown:
        raise TemplateError(
            f"query: unknown part <<{unknown[0]}>>; known: <<series>>, <<matchers>>, <<groupBy>>"
        )
    if MATCHERS not in {_NAMES[name] for name in names}:
        raise TemplateError("query: has no <<matchers>>, so every namespace would see every series; add it")
    return Template(text, _takes_quoted_names(text))


def _takes_quoted_names(text: str) -> bool:
    """Return whether each <<series>> begins a selector. Raise TemplateError for <<matchers>> outside of one."""
    is_taken, depth = True, 0
    for lexeme in _LEXEME.finditer(text):
        if lexeme[1]:
            quoted = {_NAMES[match[1]] for match in _PLACEHOLDER.finditer(lexeme[1])}
            if MATCHERS in quoted:
                raise TemplateError(
                    "query: <<matchers>> is in a string or a comment; write it between { and }"
                )
            is_taken = is_taken and SERIES not in quoted
        elif placeholder := _PLACEHOLDER.match(text, lexeme.start()):
            name = _NAMES[placeholder[1]]
            if name == MATCHERS and depth == 0:
                raise TemplateError("query: <<matchers>> is outside of a selector; write it between { and }")
            is_taken = is_taken and (name != SERIES or placeholder[2] is not None)
        elif lexeme[0] in "\"'`":
            raise TemplateError(f"query: the string that begins with {lexeme[0]} does not end")
        else:
            depth += {"{": 1, "}": -1}.get(lexeme[0], 0)
    return is_taken


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


def is_simple_name(series: str) -> bool:
    """Return whether PromQL can contain the name of a series without quotes."""
    return bool(_SIMPLE_NAME.match(series))


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
        raise StatusError(400, f"metricLabelSelector: {label!r} cannot be a label of a Prometheus series")
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
            raise StatusError(
                400, f"metricLabelSelector: Prometheus cannot compare labels as numbers ({requirement})"
            )


def _literal(text: str) -> str:
    return _METACHARACTER.sub(r"\\\1", text)
