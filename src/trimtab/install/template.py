"""Templates: manifests as plain data with placeholders for values.

    Val("image.tag")              a value
    Val("a.affinity", "affinity") the value at the first path, or if that is empty the one at the second
    Text("--port=", Val(...))     text with values in it
    Joined("watchNamespaces")     a list as `a,b`
    Pairs("featureGates")         a map as `A=true,B=false`
    If(condition, tree, other)    the other tree if the condition is false; without one nothing
    {Entries("a", "b"): None}     the entries of maps, as part of the map around; those of the first map win
    Each("watchNamespaces", tree) one item per entry of a list; `Item()` is the entry
    NAMESPACE                     the namespace of the installation

A condition is a `Val`, `Not(condition)`, `Both(a, b)`, `Either(a, b)`, `Given(path)` or `Mentions(path, text)`. A value counts as
false when it is empty, zero or false, in Helm as in Python; as given where it is not empty.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Tree = Any
"""Maps, lists and scalars, with the nodes of this module among them."""
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Val:
    """The value at a path such as `image.tag`, or if it is empty the value at another path."""

    path: str
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class Namespace:
    """The namespace of the installation."""


NAMESPACE: Final = Namespace()


@dataclass(frozen=True, slots=True)
class Item:
    """The entry of the enclosing `Each`, or one field of it."""

    field: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """A list of texts, joined by commas."""

    path: str


@dataclass(frozen=True, slots=True)
class Pairs:
    """A map as `key=value` pairs, sorted and joined by commas."""

    path: str


@dataclass(frozen=True, slots=True, init=False)
class Entries:
    """The entries of maps of the user's own, as a key of the map that they belong to.

    Without a path they are those of the entry of the enclosing `Each`.
    """

    paths: tuple[str, ...]

    def __init__(self, *paths: str) -> None:
        object.__setattr__(self, "paths", paths)


Part = str | Val | Namespace | Item | Joined | Pairs


@dataclass(frozen=True, slots=True, init=False)
class Text:
    """A text made of several parts."""

    parts: tuple[Part, ...]

    def __init__(self, *parts: Part) -> None:
        object.__setattr__(self, "parts", parts)


@dataclass(frozen=True, slots=True)
class Not:
    """True if the other condition is false."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class Both:
    """True if both conditions are true."""

    first: "Condition"
    second: "Condition"


@dataclass(frozen=True, slots=True)
class Either:
    """True if one of two conditions is true."""

    first: "Condition"
    second: "Condition"


@dataclass(frozen=True, slots=True)
class Given:
    """True if a value is not empty. Zero and false are not empty."""

    path: str


@dataclass(frozen=True, slots=True)
class Mentions:
    """True if a value contains a text."""

    path: str
    text: str


Condition = Val | Not | Both | Either | Given | Mentions


class _Absent:
    """The missing alternative of an `If`."""


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class If:
    """A tree that is left out, or replaced by another, if its condition is false."""

    condition: Condition
    then: Tree
    otherwise: Tree = ABSENT


@dataclass(frozen=True, slots=True)
class Each:
    """A tree once per entry of a list, or if it is empty of another list."""

    path: str
    item: Tree
    otherwise: str = ""


def look_up(values: Values, path: str) -> Any:
    """Return the value at a path."""
    value: Any = values
    for name in path.split("."):
        value = value[name]
    return value


def look_up_first(values: Values, path: str, otherwise: str) -> Any:
    """Return the value at a path, or if it is empty and there is another path the value there."""
    value = look_up(values, path)
    return look_up(values, otherwise) if otherwise and not value else value


def holds(condition: Condition, values: Values) -> bool:
    """Return whether a condition holds."""
    match condition:
        case Not():
            return not holds(condition.condition, values)
        case Both():
            return holds(condition.first, values) and holds(condition.second, values)
        case Either():
            return holds(condition.first, values) or holds(condition.second, values)
        case Given():
            return look_up(values, condition.path) not in ("", None)
        case Mentions():
            return condition.text in str(look_up(values, condition.path))
        case Val():
            return bool(look_up_first(values, condition.path, condition.otherwise))


def resolve(tree: Tree, values: Values, item: Any = None) -> Tree:
    """Return the tree with all placeholders filled."""
    match tree:
        case dict():
            return dict(_entries(tree, values, item))
        case list():
            return list(_items(tree, values, item))
        case Text():
            return "".join(str(_word(resolve(part, values, item))) for part in tree.parts)
        case _:
            return _leaf(tree, values, item)


def _leaf(tree: Tree, values: Values, item: Any) -> Tree:
    match tree:
        case Val():
            return look_up_first(values, tree.path, tree.otherwise)
        case Namespace():
            return look_up(values, "namespace.name")
        case Item():
            return item[tree.field] if tree.field else item
        case Joined():
            return ",".join(map(str, look_up(values, tree.path)))
        case Pairs():
            return ",".join(
                f"{key}={_word(value)}" for key, value in sorted(look_up(values, tree.path).items())
            )
        case _:
            return tree


def _entries(tree: dict[Any, Tree], values: Values, item: Any) -> Iterator[tuple[str, Tree]]:
    for key, child in tree.items():
        if isinstance(key, Entries):
            for path in reversed(key.paths):
                yield from look_up(values, path).items()
            if not key.paths:
                yield from item.items()
            continue
        for chosen in _chosen(child, values):
            yield key, resolve(chosen, values, item)


def _chosen(child: Tree, values: Values) -> list[Tree]:
    """Return the tree that a chain of conditions leaves, or nothing."""
    while isinstance(child, If):
        child = child.then if holds(child.condition, values) else child.otherwise
    return [] if child is ABSENT else [child]


def _items(trees: list[Tree], values: Values, item: Any) -> Iterator[Tree]:
    for tree in trees:
        for child in _chosen(tree, values):
            if isinstance(child, Each):
                for entry in look_up_first(values, child.path, child.otherwise):
                    yield resolve(child.item, values, entry)
            else:
                yield resolve(child, values, item)


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
