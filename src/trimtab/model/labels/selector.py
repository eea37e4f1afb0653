"""Label selectors: which labelled things are meant.

`LabelSelector` is the API's JSON form, `Selector` the compiled one that matches labels and has a canonical
text. An absent LabelSelector selects nothing, an empty one everything, as everywhere in Kubernetes.
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


class LabelSelectorRequirement(Wire, frozen=True):
    """One expression of a LabelSelector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True):
    """The JSON form of a selector; all of it must hold."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Selector:
    """A compiled selector: immutable, equal by its requirements."""

    __slots__ = ("_equalities", "_others", "_requirements", "_selects_nothing")

    def __init__(self, requirements: Iterable[Requirement] = (), *, selects_nothing: bool = False) -> None:
        """Compile requirements, which must be sorted by key."""
        self._requirements = tuple(requirements)
        self._selects_nothing = selects_nothing
        self._equalities = tuple(pair for one in self._requirements if (pair := one.equality) is not None)
        self._others = tuple(one for one in self._requirements if one.equality is None)

    @staticmethod
    def parse(text: str) -> "Selector":
        """Read a selector's text; raise SelectorError where it is malformed."""
        # Every sync reads the selectors of all targets again. Long texts are not worth the memory.
        return _parse_often(text) if len(text) <= _CACHED_LENGTH else _parse(text)

    @staticmethod
    def from_label_selector(selector: LabelSelector | None) -> "Selector":
        """Compile the JSON form; raise SelectorError if an operator, key or value is not valid."""
        if selector is None:
            return NOTHING
        found = [require(key, "=", (value,)) for key, value in sorted(selector.match_labels.items())]
        found += [_compiled(expression) for expression in selector.match_expressions]
        return Selector(sorted(found, key=lambda requirement: requirement.key))

    @staticmethod
    def from_labels(labels: Mapping[str, str]) -> "Selector":
        """Select what has all these labels, without checking them (a ReplicationController's selector)."""
        return Selector(Requirement(key, "=", (value,)) for key, value in sorted(labels.items()))

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """What must hold, sorted by key."""
        return self._requirements

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """The labels that whatever matches must have; an index needs one of them."""
        return self._equalities

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything."""
        return not self._requirements and not self._selects_nothing

    @property
    def selects_nothing(self) -> bool:
        """Whether it was made from an absent LabelSelector."""
        return self._selects_nothing

    def matches(self, labels: Labels) -> bool:
        """Whether labels fulfil every requirement."""
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


_parse_often = lru_cache(maxsize=_CACHED_TEXTS)(_parse)

EVERYTHING = Selector()
NOTHING = Selector(selects_nothing=True)


def go_string(selector: LabelSelector | None) -> str:
    """Return Go's text of the JSON form, which upstream writes into metric names, events and conditions."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _compiled(expression: LabelSelectorRequirement) -> Requirement:
    operator = _OPERATORS.get(expression.operator)
    if operator is None:
        raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
    return require(expression.key, operator, expression.values)


MOST_REQUIREMENTS = 100
"""More than anybody needs, and few enough that matching against every pod stays cheap (F53)."""


LONGEST_SHOWN = 128
"""Characters of a key or value that are repeated as they are."""


def selector_problems(selector: LabelSelector) -> Iterator[tuple[str, str]]:
    """Yield the parts that cannot be compiled; one by one, so that the first does not hide the next."""
    count = len(selector.match_labels) + len(selector.match_expressions)
    if count > MOST_REQUIREMENTS:
        yield f"{count} requirements", f"a selector may have at most {MOST_REQUIREMENTS}"
        return
    parts = {
        f"matchLabels[{_readable(key)}]": LabelSelector(match_labels={key: value})
        for key, value in selector.match_labels.items()
    }
    for position, expression in enumerate(selector.match_expressions):
        parts[f"matchExpressions[{position}]"] = LabelSelector(match_expressions=(expression,))
    for name, part in parts.items():
        try:
            Selector.from_label_selector(part)
        except SelectorError as error:
            yield name, _without(str(error), part.match_labels)


def _readable(key: str) -> str:
    return key if len(key) <= LONGEST_SHOWN else shortened(key)


def _without(problem: str, labels: Mapping[str, str]) -> str:
    """Shorten what is too long to be repeated in a problem that quotes it."""
    for text in (*labels, *labels.values()):
        problem = problem.replace(text, _readable(text)) if len(text) > LONGEST_SHOWN else problem
    return problem
