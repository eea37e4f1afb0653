"""Cache which blocks of the source each test executes, one file per test file.

A recording is valid while the test file, the helpers and conftests that it imports, and every function that it
executed are unchanged. Only test files without a valid recording are run again.
"""

import ast
import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tools.mutants.probes import blocks_of, digest_of


@dataclass(frozen=True)
class RecordedTest:
    """One test that passed, and what it costs."""

    name: str
    file: str
    seconds: float


@dataclass
class LineMap:
    """The tests that execute each block, and the blocks that run while tests are collected."""

    by_block: dict[tuple[str, int], list[RecordedTest]] = field(default_factory=lambda: defaultdict(list))
    by_file: dict[str, set[RecordedTest]] = field(default_factory=lambda: defaultdict(set))
    """The tests that execute anything of each source file."""
    by_import: dict[str, set[RecordedTest]] = field(default_factory=lambda: defaultdict(set))
    """The tests of the files that import each source file, though they may execute nothing of it."""
    at_import: set[tuple[str, int]] = field(default_factory=set)
    tests: list[RecordedTest] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    silent_folders: list[str] = field(default_factory=list)
    """Folders whose tests executed nothing of the package, as far as the recording knows."""


@cache
def digest(path: Path) -> str:
    """Return a short hash of a file; empty if there is none."""
    return digest_of(path.read_bytes()) if path.is_file() else ""


class Store:
    """The recordings in a directory that git ignores."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.root = root
        self.directory = directory

    def path_of(self, test_file: str) -> Path:
        """Return where the recording of a test file is kept."""
        return self.directory / (test_file.replace("/", "__") + ".json.gz")

    def save(
        self,
        test_file: str,
        tests: dict[str, Any],
        at_import: dict[str, list[int]],
        sources: Mapping[str, bytes],
    ) -> None:
        """Keep what the tests of one file executed, with the sources that were imported."""
        touched = {name for test in tests.values() for name in test["blocks"]} | set(at_import)
        # A test may import a module that was not imported when the tests were collected. Its fork is gone.
        texts = {name: sources.get(name) or (self.root / name).read_bytes() for name in touched}
        content = {
            "helpers": {name: digest(self.root / name) for name in self.helpers_of(test_file)},
            "sources": {name: digest_of(text) for name, text in texts.items()},
            "tests": tests,
            "at_import": at_import,
        }
        for text in texts.values():
            self._keep_source(text)
        _write(self.path_of(test_file), content)

    def _keep_source(self, source: bytes) -> None:
        """Keep the functions and blocks of a source, so that recordings outlive edits of other functions."""
        path = self.directory / "sources" / f"{digest_of(source)}.json.gz"
        if not path.exists():
            blocks = blocks_of(source)
            _write(path, {"identities": blocks.identities, "functions": blocks.functions})

    def translation(self, name: str, recorded: str) -> dict[int, int] | None:
        """Return the present number of each recorded block whose function is unchanged, None for an unchanged file."""
        if digest(self.root / name) == recorded:
            return None
        return _translation(self.root / name, self.directory / "sources" / f"{recorded}.json.gz")

    def load(self, test_file: str) -> dict[str, Any] | None:
        """Return the recording of a test file, or None."""
        path = self.path_of(test_file)
        if not path.exists():
            return None
        content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
        return content

    def is_valid(self, test_file: str, content: dict[str, Any] | None, *, keep_stale: bool = False) -> bool:
        """Return whether a recording still describes the tree; `keep_stale` forgives changed sources."""
        if content is None or set(content["helpers"]) != set(self.helpers_of(test_file)):
            return False
        if any(digest(self.root / name) != value for name, value in content["helpers"].items()):
            return False
        return keep_stale or not any(
            self._has_changed(name, value, content) for name, value in content["sources"].items()
        )

    def _has_changed(self, name: str, recorded: str, content: dict[str, Any]) -> bool:
        """Return whether a function that a test executed has another text now."""
        translation = self.translation(name, recorded)
        if translation is None:
            return False
        executed = {block for test in content["tests"].values() for block in test["blocks"].get(name, ())}
        return not executed <= translation.keys()

    def helpers_of(self, test_file: str) -> list[str]:
        """Return the test file, its conftests and the modules of `tests` that it imports, directly or not."""
        found: set[str] = set()
        path = Path(test_file)
        waiting = [str(path), *(str(parent / "conftest.py") for parent in path.parents)]
        while waiting:
            name = waiting.pop()
            if name not in found and (self.root / name).is_file():
                found.add(name)
                waiting.extend(_imported(self.root, name))
        return sorted(found)


@cache
def _translation(path: Path, kept: Path) -> dict[int, int]:
    if not kept.exists() or not path.is_file():
        return {}
    old = json.loads(gzip.decompress(kept.read_bytes()))
    new = blocks_of(path.read_bytes())
    places = {identity: number for number, identity in enumerate(new.identities)}
    return {
        number: places[scope, place]
        for number, (scope, place) in enumerate(old["identities"])
        if new.functions.get(scope) == old["functions"].get(scope) and (scope, place) in places
    }


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(gzip.compress(json.dumps(content).encode(), 1))
    temporary.rename(path)


def imported_sources(root: Path, test_file: str) -> tuple[str, ...]:
    """Return the files of the package that a test file imports itself."""
    return tuple(name for name in _paths(root, test_file, "trimtab", "src/") if (root / name).is_file())


@cache
def reached_sources(root: Path, test_file: str) -> frozenset[str]:
    """Return the files of the package that a test file imports, itself or through other files of the package."""
    found: set[str] = set()
    waiting = [test_file]
    while waiting:
        new = set(imported_sources(root, waiting.pop())) - found
        found |= new
        waiting.extend(new)
    return frozenset(found)


def _imported(root: Path, name: str) -> tuple[str, ...]:
    return _paths(root, name, "tests", "")


@cache
def _paths(root: Path, name: str, package: str, folder: str) -> tuple[str, ...]:
    tree = ast.parse((root / name).read_bytes())
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return tuple(
        folder + module.replace(".", "/") + suffix
        for module in sorted(modules)
        if module.partition(".")[0] == package
        for suffix in (".py", "/__init__.py")
    )


def load_map(
    store: Store, test_files: Iterable[str], *, keep_stale: bool = False
) -> tuple[LineMap, list[str]]:
    """Return the map of all valid recordings, and the test files that have none."""
    line_map, stale = LineMap(), []
    executed: dict[str, int] = defaultdict(int)
    for test_file in test_files:
        content = store.load(test_file)
        if content is None or not store.is_valid(test_file, content, keep_stale=keep_stale):
            stale.append(test_file)
            continue
        executed[str(Path(test_file).parent)] += _add(line_map, store, test_file, content)
    line_map.silent_folders = sorted(folder for folder, count in executed.items() if not count)
    return line_map, stale


def _add(line_map: LineMap, store: Store, test_file: str, content: dict[str, Any]) -> int:
    translations = {name: store.translation(name, value) for name, value in content["sources"].items()}

    def present(executed: dict[str, list[int]]) -> Iterator[tuple[str, int]]:
        for file, blocks in executed.items():
            known = translations[file]
            yield from (
                ((file, block) for block in blocks)
                if known is None
                else ((file, known[block]) for block in blocks if block in known)
            )

    count = 0
    sources = imported_sources(store.root, test_file)
    for name, record in content["tests"].items():
        if not record["passed"]:
            line_map.failed.append(name)
            continue
        test = RecordedTest(name, test_file, record["seconds"])
        line_map.tests.append(test)
        for file in sources:
            line_map.by_import[file].add(test)
        for file, block in present(record["blocks"]):
            line_map.by_file[file].add(test)
            line_map.by_block[file, block].append(test)
            count += 1
    line_map.at_import |= set(present(content["at_import"]))
    return count


def ordered(tests: Iterable[RecordedTest], budget: float, home: str = "") -> Iterator[RecordedTest]:
    """Yield tests in the order to try, as many as fit into the budget in seconds.

    Tests below the folder `home` come first. Then the fastest test of each file goes before the second of each: tests of one
    file are alike, so going round the files finds the one that notices sooner than the fastest tests do.
    """
    by_file: dict[str, list[RecordedTest]] = defaultdict(list)
    for test in tests:
        by_file[test.file].append(test)
    ranked = [
        (not (home and test.file.startswith(home)), rank, test.seconds, test.name, test)
        for group in by_file.values()
        for rank, test in enumerate(sorted(group, key=lambda test: (test.seconds, test.name)))
    ]
    for _, _, seconds, _, test in sorted(ranked):
        if seconds <= budget:
            budget -= seconds
            yield test
