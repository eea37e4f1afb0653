"""The reference page of the library, from the source of its public names."""

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import trimtab
from trimtab.decide.horizontal import Decision
from trimtab.decide.observed import decide_observation
from trimtab.library.simulator import Figures, LoadFigures
from trimtab.library.simulator.sizes import Size

_ABOUT = """# Python

`import trimtab` offers the names on this page, and all other names may change in any release. `Figures`, `LoadFigures`, `Size` and
`Decision` are values of results, which are not imported by name. [A notebook](../python.md) shows how the names go together. A name is imported on its first use, and `to_pandas` alone needs `trimtab[notebook]`.
"""

WIDTH = 100
"""Signatures longer than this have a line per parameter."""

BAR = "\\|"
"""A bar inside of a cell."""

_GROUPS = {
    "Manifests": ("read_autoscaler", "read_autoscalers", "Autoscaler", "ManifestError"),
    "Recorded load": ("Trace", "TraceError"),
    "Backtests": ("simulate", "Simulation", "Figures", "LoadFigures", "Size", "ModelError"),
    "Decisions": (
        "decide",
        "explain",
        "replay",
        "Observation",
        "Record",
        "Decision",
        "Explanation",
        "Replay",
        "RecordError",
    ),
}

_VALUES = {value.__name__: value for value in (Decision, Figures, LoadFigures, Size)}
"""Values that are no public names, because nothing but the library makes them."""


def python_page() -> list[str]:
    """Return the parts of the page. Raise ValueError if a public name is in no group."""
    shown = {name for names in _GROUPS.values() for name in names}
    if left_out := {*trimtab.__all__} - shown - {"__version__"}:
        raise ValueError(f"public names that no group of the page has: {', '.join(sorted(left_out))}")
    return [_ABOUT, *(part for title, names in _GROUPS.items() for part in _group(title, names))]


def _group(title: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"## {title}\n"
    for name in names:
        yield f"### {name}\n"
        yield from _Definition(_find(name)).parts(name)


def _find(name: str) -> Any:
    if name in _VALUES:
        return _VALUES[name]
    return decide_observation if name == "decide" else getattr(trimtab, name)


class _Definition:
    """The source of a public class or function."""

    def __init__(self, public: Any) -> None:
        source = Path(inspect.getfile(sys.modules[public.__module__])).read_text(encoding="utf-8")
        module = ast.parse(source).body
        found = [node for node in module if getattr(node, "name", "") == public.__name__]
        self._node = found[0]

    def parts(self, name: str) -> Iterator[str]:
        if isinstance(self._node, ast.ClassDef):
            yield from self._class(self._node)
        elif isinstance(self._node, ast.FunctionDef):
            yield from self._function(self._node, name)

    def _class(self, node: ast.ClassDef) -> Iterator[str]:
        yield f"{_documentation(node)}\n"
        methods = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name[0] != "_"]
        fields = [
            *self._fields(node),
            *(self._property(method) for method in methods if _is_property(method)),
        ]
        if fields:
            rows = [("field", "type", "meaning"), ("---", "---", "---"), *fields]
            yield "".join(f"| {' | '.join(cell.replace('|', BAR) for cell in row)} |\n" for row in rows)
        for method in methods:
            if not _is_property(method):
                yield from self._function(method, f"{node.name}.{method.name}")

    def _fields(self, node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
        """Yield the annotated fields, each with the text below it."""
        for statement, below in itertools.pairwise([*node.body, None]):
            if not isinstance(statement, ast.AnnAssign) or ast.unparse(statement.target)[0] == "_":
                continue
            text = ast.literal_eval(below.value) if isinstance(below, ast.Expr) else ""
            kind = self._type(statement.annotation)
            yield f"`{ast.unparse(statement.target)}`", f"`{kind}`", " ".join(text.split())

    def _property(self, method: ast.FunctionDef) -> tuple[str, str, str]:
        text = _documentation(method).removeprefix("Return ")
        return f"`{method.name}`", f"`{self._type(method.returns)}`", text[:1].upper() + text[1:]

    def _function(self, node: ast.FunctionDef, name: str) -> Iterator[str]:
        arguments = [argument for argument in self._arguments(node.args) if argument not in ("self", "cls")]
        signature = f"{name}({', '.join(arguments)}) -> {self._type(node.returns)}"
        if len(signature) > WIDTH:
            lines = "".join(f"    {argument},\n" for argument in arguments)
            signature = f"{name}(\n{lines}) -> {self._type(node.returns)}"
        yield f"```py\n{signature}\n```\n"
        yield f"{_documentation(node)}\n"

    def _arguments(self, arguments: ast.arguments) -> Iterator[str]:
        required = [None] * (len(arguments.args) - len(arguments.defaults))
        for argument, default in zip(arguments.args, [*required, *arguments.defaults], strict=True):
            yield self._argument(argument, default)
        if arguments.kwonlyargs:
            yield "*"
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            yield self._argument(argument, default)

    def _argument(self, argument: ast.arg, default: ast.expr | None) -> str:
        text = f"{argument.arg}: {self._type(argument.annotation)}" if argument.annotation else argument.arg
        return text if default is None else f"{text} = {ast.unparse(default)}"

    def _type(self, annotation: ast.expr | None) -> str:
        """Return an annotation with the aliases of its module replaced by what they mean."""
        text = "None" if annotation is None else ast.unparse(annotation).strip("'")
        for alias, meaning in _aliases().items():
            text = re.sub(rf"(?<![\w.]){re.escape(alias)}\b", meaning, text)
        return text


@cache
def _aliases() -> dict[str, str]:
    """Return what the names that the library gives to types mean."""
    return {
        ast.unparse(node.targets[0]): ast.unparse(node.value)
        for path in sorted(Path(trimtab.__file__).parent.joinpath("library").glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript)
    } | {"pd.DataFrame": "pandas.DataFrame"}


def _is_property(method: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in method.decorator_list)


def _documentation(node: ast.ClassDef | ast.FunctionDef) -> str:
    paragraphs = (ast.get_docstring(node) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
