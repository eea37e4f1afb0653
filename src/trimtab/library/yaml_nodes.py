"""Builds plain data with line numbers from YAML events.

Events are processed one by one, so that a document that is too deep or too large is rejected before it is built.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_DEPTH = 100
MAX_ALIASES = 100
MAX_NODES = 1_000_000
"""Maximum number of values in an input. An alias counts as often as it is used."""

MAX_DIGITS = 1000

_TAG = "tag:yaml.org,2002:"
_RESOLVER = yaml.resolver.Resolver()
# JSON's way of writing 1e3, which YAML 1.1 takes for text.
_EXPONENT = re.compile(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+\Z", re.ASCII)
_INDEX = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


@dataclass(frozen=True)
class Place:
    """A line of an input. Line 0 is the whole input."""

    source: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


class DocumentError(Exception):
    """The input cannot be read as documents."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


@dataclass
class YamlNode:
    """A value, its first line, and its children by key or index."""

    data: Any
    line: int
    children: "dict[str, YamlNode]" = field(default_factory=dict)
    size: int = 1
    is_open: bool = False


@dataclass(frozen=True)
class Document:
    """A document of an input: its data, and the line of each part."""

    source: str
    root: YamlNode

    @property
    def data(self) -> Any:
        """Return the document as plain JSON data."""
        return self.root.data

    def item(self, *path: str) -> "Document":
        """Return a part of this document as a document of its own."""
        node = self.root
        for step in path:
            node = node.children[step]
        return Document(self.source, node)

    def place_of(self, path: str = "") -> Place:
        """Return the line of a field path such as `spec.metrics[0].type`, or of its nearest parent that exists."""
        node = self.root
        for step in steps_of(path):
            child = node.children.get(step)
            if child is None:
                break
            node = child
        return Place(self.source, node.line)


def steps_of(path: str) -> list[str]:
    """Return the keys and indexes of a field path such as `spec.metrics[0].type`."""
    return [key or index.strip("\"'") for key, index in _INDEX.findall(path)]


def compose(events: Iterable[yaml.Event], source: str) -> Iterator[Document]:
    """Yield the documents of the events."""
    composer = _Composer(source)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            composer = _Composer(source, composer.budget)
        elif isinstance(event, yaml.DocumentEndEvent):
            assert composer.root is not None  # libyaml gives an empty document the scalar null
            yield Document(source, composer.root)
        elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            composer.take(event)


@dataclass
class _Open:
    """A collection under construction: its pending key, and the mappings to merge."""

    node: YamlNode
    key: YamlNode | None = None
    merges: list[YamlNode] = field(default_factory=list)


class _Composer:
    """Builds one document from its events."""

    def __init__(self, source: str, budget: int = MAX_NODES) -> None:
        self.source = source
        self.budget = budget
        self.root: YamlNode | None = None
        self.stack: list[_Open] = []
        self.anchors: dict[str, YamlNode] = {}
        self.aliases = 0

    def take(self, event: yaml.Event) -> None:
        assert event.start_mark is not None  # every event of a parser has one
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            node = YamlNode(self.scalar(event, line), line)
            self.anchor(event, node)
            self.add(node, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = self.stack.pop()
            self.merge(closed)
            closed.node.is_open = False
            self.add(closed.node, line)
        elif isinstance(event, yaml.AliasEvent):
            self.add(self.aliased(event, line), line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self.open(event, line)

    def open(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise self.refuse(line, f"is nested deeper than {MAX_DEPTH} levels")
        is_map = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_map else "seq")):
            raise self.refuse(line, f"the tag {event.tag} is not allowed in a manifest")
        node = YamlNode({} if is_map else [], line, is_open=True)
        self.anchor(event, node)
        self.stack.append(_Open(node))

    def aliased(self, event: yaml.AliasEvent, line: int) -> YamlNode:
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise self.refuse(line, f"uses more than {MAX_ALIASES} aliases")
        node = self.anchors.get(event.anchor or "")
        if node is None:
            raise self.refuse(line, f"the alias *{event.anchor} names no anchor")
        if node.is_open:
            raise self.refuse(line, f"the alias *{event.anchor} contains itself")
        return node

    def anchor(self, event: yaml.NodeEvent, node: YamlNode) -> None:
        if event.anchor:
            self.anchors[event.anchor] = node

    def add(self, node: YamlNode, line: int) -> None:
        """Add a finished value to the open collection, as its next key, or as the document."""
        if not self.stack:
            self.root = node
            return
        current = self.stack[-1]
        parent = current.node
        if isinstance(parent.data, list):
            parent.children[str(len(parent.data))] = node
            parent.data.append(node.data)
        elif current.key is None:
            current.key = self.key(current, node, line)
            return
        else:
            _put(current, node)
        parent.size += node.size
        if parent.size > self.budget:
            raise self.refuse(line, f"holds more than {MAX_NODES} values")

    def key(self, current: _Open, node: YamlNode, line: int) -> YamlNode:
        """Return a key as text, as JSON requires."""
        if isinstance(node.data, dict | list):
            raise self.refuse(line, "a key must be text")
        text = node.data if isinstance(node.data, str) else _key_text(node.data)
        if text in current.node.data:
            first = current.node.children[text].line
            raise self.refuse(line, f'the key "{text}" is given twice, first in line {first}')
        return YamlNode(text, line)

    def merge(self, closed: _Open) -> None:
        """Merge the mappings of `<<`. The mapping's own keys take precedence."""
        target = closed.node
        for node in closed.merges:
            for source in node.children.values() if isinstance(node.data, list) else [node]:
                if not isinstance(source.data, dict):
                    raise self.refuse(node.line, "the merge key << needs a mapping")
                for name, child in source.children.items():
                    if name not in target.data:
                        target.data[name] = child.data
                        target.children[name] = child

    def scalar(self, event: yaml.ScalarEvent, line: int) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            resolved = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]  # the stubs lack it
            tag = str(resolved)
        try:
            return _scalar(tag.removeprefix(_TAG), event.value, event.implicit[0])
        except ValueError as error:
            raise self.refuse(line, f"{_shortened(event.value)}: {error}") from error

    def refuse(self, line: int, problem: str) -> DocumentError:
        return DocumentError(Place(self.source, line), problem)


def _put(current: _Open, node: YamlNode) -> None:
    key, current.key = current.key, None
    assert key is not None
    if key.data == "<<":
        current.merges.append(node)
        return
    current.node.data[key.data] = node.data
    # A field stands where its key stands, also when its value is a block that begins a line later.
    current.node.children[key.data] = YamlNode(node.data, key.line, node.children, node.size)


def _scalar(tag: str, value: str, is_plain: bool) -> Any:
    if tag == "str" or tag in ("timestamp", "value", "merge"):
        return _number(value) if is_plain and _EXPONENT.match(value) else value
    if tag == "null":
        return None
    if tag == "bool":
        return _boolean(value)
    if tag == "int":
        return value if ":" in value else _integer(value)
    if tag == "float":
        return value if ":" in value else _number(value)
    raise ValueError(f"the tag !!{tag} is not allowed in a manifest")


def _boolean(value: str) -> bool:
    if value.lower() not in yaml.SafeLoader.bool_values:
        raise ValueError("is not a boolean")
    return yaml.SafeLoader.bool_values[value.lower()]


def _integer(value: str) -> int:
    if len(value) > MAX_DIGITS:
        raise ValueError(f"is a number of more than {MAX_DIGITS} digits")
    digits = value.replace("_", "")
    sign, digits = (-1, digits[1:]) if digits[:1] == "-" else (1, digits.removeprefix("+"))
    if digits.startswith("0") and digits[1:].isdigit():
        return sign * int(digits, 8)
    try:
        return sign * int(digits, 0)
    except ValueError:
        raise ValueError("is not a whole number") from None


def _number(value: str) -> float:
    try:
        number = float(value.replace("_", ""))
    except ValueError:
        number = math.nan  # .inf and .nan as well
    if not math.isfinite(number):
        raise ValueError("is not a number that JSON can hold")
    return number


def _key_text(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shortened(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:37]}..."
