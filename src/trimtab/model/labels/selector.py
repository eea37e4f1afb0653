"""Label selectors.

`LabelSelector` is the API's JSON form, `Selector` the compiled one that matches labels and has a canonical text. An
absent LabelSelector selects nothing, an empty one everything, as everywhere in Kubernetes.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from trimtab.model.field_errors import shortened
from trimtab.model.json.wire import Wire
from trimtab.model.labels.parser import parse_requirements
from trimtab.model.labels.requirement import Labels, Operator, Requirement, SelectorError, require

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Requirement",
    "Selector",
    "SelectorError",
    "go_string",
]

_OPERATORS: dict[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_CACHED_TEXTS = 16_384
_CACHED_LENGTH = 512

MAX_REQUIREMENTS = 100
"""More than a workload needs, and few enough that matching against every pod stays cheap (F53)."""

_MAX_QUOTED_LENGTH = 128
"""Characters of a key or value that a message repeats in full."""


class LabelSelectorRequirement(Wire):
    """One expression of a LabelSelector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire):
    """The JSON form of a selector, all of which must hold."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Selector:
    """A compiled selector: immutable, equal by its requirements."""

    __slots__ = ("_equalities", "_others", "_requirements", "_selects_nothing")

    def __init__(self, requirements: Iterable[Requirement] = (), *, selects_nothing: bool = False) -> None:
        """Compile requirements, which must be sorted by key."""
        self._requirements = tuple(requirements)
        self._selects_nothing = selects_nothing
        equalities = [(requirement, requirement.equality) for requirement in self._requirements]
        self._equalities = tuple(label for _, label in equalities if label is not None)
        self._others = tuple(requirement for requirement, label in equalities if label is None)

    @staticmethod
    def parse(text: str) -> "Selector":
        """Return the selector of a text, or raise SelectorError."""
        # Every sync parses the selectors of all targets again. Long texts are not worth the memory.
        return _parse_cached(text) if len(text) <= _CACHED_LENGTH else _parse(text)

    @staticmethod
    def from_label_selector(selector: LabelSelector | None) -> "Selector":
        """Compile the JSON form, or raise SelectorError if an operator, key or value is invalid."""
        if selector is None:
            return NOTHING
        requirements = [require(key, "=", (value,)) for key, value in sorted(selector.match_labels.items())]
        requirements += [_compile(expression) for expression in selector.match_expressions]
        return Selector(sorted(requirements, key=lambda requirement: requirement.key))

    @staticmethod
    def from_labels(labels: Mapping[str, str]) -> "Selector":
        """Return the unchecked selector of these labels, as a ReplicationController has it."""
        return Selector(Requirement(key, "=", (value,)) for key, value in sorted(labels.items()))

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Return the requirements, sorted by key."""
        return self._requirements

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """Return the labels that every matching pod has, for use in an index."""
        return self._equalities

    @property
    def is_empty(self) -> bool:
        """Return whether it selects everything."""
        return not self._requirements and not self._selects_nothing

    @property
    def selects_nothing(self) -> bool:
        """Return whether it comes from an absent LabelSelector."""
        return self._selects_nothing

    def matches(self, labels: Labels) -> bool:
        """Return whether labels meet every requirement."""
        for key, value in self._equalities:
            if labels.get(key) != value:
                return False
        if self._others:
            return all(requirement.matches(labels) for requirement in self._others)
        return not self._selects_nothing

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self._requirements == other._requirements and self._selects_nothing == other._selects_nothing

    def __hash__(self) -> int:
        return hash((self._requirements, self._selects_nothing))

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self._requirements)

    def __repr__(self) -> str:
        return "NOTHING" if self._selects_nothing else f"Selector.parse({str(self)!r})"


def _parse(text: str) -> Selector:
    return Selector(parse_requirements(text))


_parse_cached = lru_cache(maxsize=_CACHED_TEXTS)(_parse)

EVERYTHING = Selector()
NOTHING = Selector(selects_nothing=True)


def go_string(selector: LabelSelector | None) -> str:
    """Return Go's text of the JSON form, which upstream writes into metric names, events and conditions."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{expression.key},Operator:{expression.operator},"
        f"Values:[{' '.join(expression.values)}],}},"
        for expression in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _compile(expression: LabelSelectorRequirement) -> Requirement:
    operator = _OPERATORS.get(expression.operator)
    if operator is None:
        raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
    return require(expression.key, operator, expression.values)


def selector_problems(selector: LabelSelector) -> Iterator[tuple[str, str]]:
    """Yield every part of a selector that is invalid, with its problem."""
    count = len(selector.match_labels) + len(selector.match_expressions)
    if count > MAX_REQUIREMENTS:
        yield f"{count} requirements", f"a selector may have at most {MAX_REQUIREMENTS}"
        return
    parts = {
        f"matchLabels[{_shorten(key)}]": LabelSelector(match_labels={key: value})
        for key, value in selector.match_labels.items()
    }
    for position, expression in enumerate(selector.match_expressions):
        parts[f"matchExpressions[{position}]"] = LabelSelector(match_expressions=(expression,))
    for name, part in parts.items():
        try:
            Selector.from_label_selector(part)
        except SelectorError as error:
            problem = str(error)
            for text in (*part.match_labels, *part.match_labels.values()):
                problem = problem.replace(text, _shorten(text))
            yield name, problem


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED_LENGTH else shortened(text)
