"""Record which blocks of statements a test executes, and load edited modules.

Each block of a function begins with a probe, `__probes__[number] = 1`. That costs some nanoseconds where tracing costs
microseconds, works in every thread and coroutine, and needs nothing of the tests. The loader must be installed before
anything imports the package: a conftest that imports it first would record nothing.
"""

import ast
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

PACKAGE = "trimtab"
ARRAY = "__probes__"
Compiler = Callable[[bytes, Path], CodeType]


@dataclass(frozen=True)
class Blocks:
    """The blocks of a module: how many there are, and to which one a line belongs."""

    count: int
    by_line: dict[int, int]
    """The block of each statement of a function, by its first line."""
    identities: tuple[tuple[str, int], ...]
    """The function of each block and its place there, which other edits of the file leave alone."""
    functions: dict[str, str]
    """A hash of the text of each function, by its qualified name."""


@cache
def blocks_of(source: bytes) -> Blocks:
    """Return the blocks of a module without changing it."""
    return _insert(ast.parse(source))


def compile_with_probes(source: bytes, path: Path) -> tuple[CodeType, int]:
    """Return the module's code with probes, and the number of probes."""
    tree = ast.parse(source)
    blocks = _insert(tree)
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True), blocks.count


def _insert(tree: ast.Module) -> Blocks:
    inserter = _Inserter()
    inserter.descend(tree, "", is_inside=False)
    seen: Counter[str] = Counter()
    identities = []
    for scope in inserter.scopes:
        identities.append((scope, seen[scope]))
        seen[scope] += 1
    return Blocks(len(identities), inserter.by_line, tuple(identities), inserter.functions)


class _Inserter:
    """Puts a probe in front of each block of a module."""

    def __init__(self) -> None:
        self.by_line: dict[int, int] = {}
        self.functions: dict[str, str] = {}
        self.scopes: list[str] = []
        """The function of each block."""

    def descend(self, node: ast.AST, scope: str, *, is_inside: bool) -> None:
        """Mark the blocks below a node; `is_inside` says whether its statements belong to a function."""
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = f"{scope}.{node.name}".lstrip(".")
        if is_function:
            self.functions[scope] = digest_of((self.functions.get(scope, "") + ast.dump(node)).encode())
        is_inside = is_function or (is_inside and not isinstance(node, ast.ClassDef))
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and statements:
                if is_inside:
                    setattr(node, name, self.mark(statements, scope))
                else:
                    for statement in statements:
                        self.descend(statement, scope, is_inside=False)
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.descend(part, scope, is_inside=is_inside)

    def mark(self, statements: list[ast.stmt], scope: str) -> list[ast.stmt]:
        """Return statements with a probe at the beginning and after each compound statement."""
        marked: list[ast.stmt] = []
        needs_probe = True
        for position, statement in enumerate(statements):
            is_docstring = (
                position == 0
                and isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
            )
            if needs_probe and not is_docstring:
                marked.append(_probe(len(self.scopes), statement))
                self.scopes.append(scope)
                needs_probe = False
            self.by_line.setdefault(statement.lineno, max(len(self.scopes) - 1, 0))
            marked.append(statement)
            # What follows a compound statement may not run although the statement does.
            needs_probe = needs_probe or hasattr(statement, "body") or hasattr(statement, "cases")
            self.descend(statement, scope, is_inside=True)
        return marked


def _probe(number: int, before: ast.stmt) -> ast.stmt:
    target = ast.Subscript(ast.Name(ARRAY, ast.Load()), ast.Constant(number), ast.Store())
    probe = ast.Assign([target], ast.Constant(1))
    for node in ast.walk(probe):
        ast.copy_location(node, before)
    return probe


def digest_of(content: bytes) -> str:
    """Return a short hash."""
    return hashlib.sha256(content).hexdigest()[:16]


class Recorder:
    """The probes of all modules that were imported since the recorder was installed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.arrays: dict[str, bytearray] = {}
        self.sources: dict[str, bytes] = {}
        """The sources as they were imported; a file may change while tests run."""

    def compile(self, source: bytes, path: Path) -> CodeType:
        """Compile a module with probes and give it an array."""
        code, count = compile_with_probes(source, path)
        name = str(path.relative_to(self.root))
        self.arrays[name], self.sources[name] = bytearray(count), source
        return code

    def prepare(self, module: ModuleType, path: Path) -> None:
        """Put the array where the module's code looks for it."""
        setattr(module, ARRAY, self.arrays[str(path.relative_to(self.root))])

    def take(self) -> dict[str, list[int]]:
        """Return the blocks that were executed since the last call, by file."""
        taken = {}
        for name, array in self.arrays.items():
            if any(array):
                taken[name] = [number for number, value in enumerate(array) if value]
                array[:] = bytes(len(array))
        return taken


class Finder:
    """Loads the package's modules through a compiler; the source files stay as they are."""

    def __init__(
        self,
        compiler: Compiler,
        prepare: Callable[[ModuleType, Path], None] | None = None,
        only: Path | None = None,
    ) -> None:
        self.compiler = compiler
        self.prepare = prepare
        self.only = only

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the package as Python does, and replace its loader."""
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return spec
        if self.only is None or Path(spec.loader.path) == self.only:
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self)
        return spec

    def install(self) -> None:
        """Load everything that is imported from now on through this finder."""
        early = sorted(name for name in sys.modules if name.partition(".")[0] == PACKAGE)
        if early:
            raise RuntimeError(
                f"{early[0]} was imported before recording began, so its lines would be missing"
            )
        sys.meta_path.insert(0, self)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, finder: Finder) -> None:
        super().__init__(name, path)
        self.finder = finder

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname))
        return self.finder.compiler(path.read_bytes(), path)

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        if self.finder.prepare is not None:
            self.finder.prepare(module, Path(self.get_filename(module.__name__)))
        exec(code, module.__dict__)
