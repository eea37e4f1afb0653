"""Cache which blocks of the source each test executes, one file per test file.

A recording is valid while the test file, the helpers and conftests that it imports, and every source file that it
executed are unchanged. Only test files without a valid recording are run again.
"""

import ast
import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tools.mutants.probes import digest_of


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
    at_import: set[tuple[str, int]] = field(default_factory=set)
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
        digests: dict[str, str] | None = None,
    ) -> None:
        """Keep what the tests of one file executed, with the hashes of the sources that were imported."""
        touched = {name for test in tests.values() for name in test["blocks"]} | set(at_import)
        content = {
            "helpers": {name: digest(self.root / name) for name in self.helpers_of(test_file)},
            "sources": {name: (digests or {}).get(name) or digest(self.root / name) for name in touched},
            "tests": tests,
            "at_import": at_import,
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.path_of(test_file)
        temporary = path.with_suffix(".part")
        temporary.write_bytes(gzip.compress(json.dumps(content).encode(), 1))
        temporary.rename(path)

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
        known = content["helpers"] if keep_stale else {**content["helpers"], **content["sources"]}
        return all(digest(self.root / name) == value for name, value in known.items())

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
def _imported(root: Path, name: str) -> tuple[str, ...]:
    tree = ast.parse((root / name).read_bytes())
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return tuple(
        module.replace(".", "/") + suffix
        for module in sorted(modules)
        if module.partition(".")[0] == "tests"
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
    # Block numbers of a changed source file mean nothing; with `keep_stale` the others are still used.
    current = {name for name, value in content["sources"].items() if digest(store.root / name) == value}
    count = 0
    for name, record in content["tests"].items():
        if not record["passed"]:
            line_map.failed.append(name)
            continue
        test = RecordedTest(name, test_file, record["seconds"])
        for file, blocks in record["blocks"].items():
            if file in current:
                line_map.by_file[file].add(test)
                for block in blocks:
                    line_map.by_block[file, block].append(test)
                count += len(blocks)
    line_map.at_import |= {
        (file, block) for file, blocks in content["at_import"].items() if file in current for block in blocks
    }
    return count


def ordered(tests: Iterable[RecordedTest], budget: float) -> Iterator[RecordedTest]:
    """Yield the fastest test of each file, then the second of each, while the budget in seconds lasts.

    Tests of one file are alike. Going round the files finds the one that notices sooner than the fastest tests do.
    """
    by_file: dict[str, list[RecordedTest]] = defaultdict(list)
    for test in tests:
        by_file[test.file].append(test)
    ranked = [
        (rank, test.seconds, test.name, test)
        for group in by_file.values()
        for rank, test in enumerate(sorted(group, key=lambda test: (test.seconds, test.name)))
    ]
    for _, seconds, _, test in sorted(ranked):
        budget -= seconds
        if budget < 0:
            return
        yield test
