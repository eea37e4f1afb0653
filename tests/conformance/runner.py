"""Run vector files through their checkers and tell, per file, what passed, what is ruled and what failed."""

import gzip
import json
import re
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TextIO

from tests.conformance import registry
from tests.conformance.rulings import OVERFLOW, ruling_for
from tests.conformance.versions import RECORDED, Version, all_versions, replaying

RULED_LIMIT = 0.02
"""Share of a file that rulings may set aside; beyond it a rule hides more than it explains."""

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
"""The recorded answers that belong to the project."""

CALLED = re.compile(rb'"function": ?"\w+"|"kind": ?"\w+"(?!.*"kind")')
"""What a case calls, as its line has it; objects inside of it have a kind, too."""


@dataclass
class FileResult:
    """What became of the cases of one vector file."""

    path: Path
    version: Version = RECORDED
    total: int = 0
    passed: int = 0
    uncovered: Counter[str] = field(default_factory=Counter)
    ruled: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    """The cases that each change of a later version applied to."""
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_covered(self) -> bool:
        """Whether any checker is registered for anything in the file."""
        return sum(self.uncovered.values()) < self.total or self.total == 0

    @property
    def has_too_many_ruled(self) -> bool:
        """Whether rulings set aside as much as the limit or more."""
        counted = self.ruled.total() - self.ruled[OVERFLOW]
        return counted > 0 and counted >= RULED_LIMIT * self.total

    @property
    def is_good(self) -> bool:
        """Whether nothing failed, nothing is unknown and rulings stay exceptions."""
        return not (self.failures or self.uncovered or self.has_too_many_ruled)


def vector_files(places: Iterable[Path]) -> list[Path]:
    """Return the vector files among and below `places`, in a stable order."""
    found: set[Path] = set()
    for place in places:
        found.update([place] if place.is_file() else [*place.rglob("*.jsonl"), *place.rglob("*.jsonl.gz")])
    return sorted(found)


def run_files(
    files: Iterable[Path], only: str = "", jobs: int = 1, version: Version = RECORDED
) -> Iterator[FileResult]:
    """Check every case of the files whose id contains `only`, some files at a time, in their order."""
    if jobs == 1:
        yield from (run_file(path, only, version=version) for path in files)
        return
    # A fork has the checkers that this process imported.
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        yield from pool.map(_run_named, files, repeat(only), repeat(version.name))


def _run_named(path: Path, only: str, version: str) -> FileResult:
    """Check a file in another process, to which no function of a version can be sent."""
    return run_file(path, only, version=next(each for each in all_versions() if each.name == version))


def run_file(path: Path, only: str = "", every: int = 1, version: Version = RECORDED) -> FileResult:
    """Check the cases of one file whose id contains `only`: of each function or kind the first and every n-th.

    For another version than the recorded one, cases that do not depend on a version are left out.
    """
    result = FileResult(path, version)
    with replaying(version):
        _run_cases(path, only, every, result)
    return result


def _run_cases(path: Path, only: str, every: int, result: FileResult) -> None:
    seen: Counter[bytes] = Counter()
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        found = CALLED.search(line)
        called = found.group() if found else b""
        seen[called] += 1
        if (seen[called] - 1) % every:
            continue
        case = _parsed(path, number, line)
        if only in str(case.get("id", "")):
            _check(case, path.name.partition(".")[0], result)


def _lines(path: Path) -> list[bytes]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.split(b"\n")


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        case: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}:{number}: this line is not a JSON object: {error}") from error
    return case


def _check(case: dict[str, Any], stem: str, result: FileResult) -> None:
    checker = registry.find(case, stem)
    if result.version is not RECORDED and (checker is None or not _depends_on_version(checker)):
        return
    result.total += 1
    if checker is None:
        result.uncovered[registry.name_of(case)] += 1
        return
    case, changes = result.version.changed(case)
    result.changed.update(changes)
    difference = _difference(checker, case)
    if difference is None:
        result.passed += 1
    elif ruling := ruling_for(case, difference):
        result.ruled[ruling.name] += 1
    else:
        result.failures.append((str(case.get("id")), difference))


def _depends_on_version(checker: registry.Checker) -> bool:
    return checker.__module__.rpartition(".")[2].startswith("hpa_")


def _difference(checker: registry.Checker, case: dict[str, Any]) -> str | None:
    try:
        return checker(case)
    except Exception as error:  # noqa: BLE001 - a checker that raises is a failed case, not a failed run
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"raised {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"


def report(result: FileResult, out: TextIO, show: int) -> None:
    """Print the file's line, its rulings apart, and up to `show` differences."""
    name = result.path.name
    if not result.is_covered:
        out.write(f"{name}: not covered ({result.total} cases)\n")
        return
    out.write(f"{name}: {result.passed}/{result.total}\n")
    if result.changed:
        out.write(f"  changed by {result.version.name}: {_listed(result.changed)}\n")
    if result.ruled:
        out.write(f"  ruled {result.ruled.total()}: {_listed(result.ruled)}\n")
    if result.has_too_many_ruled:
        out.write(f"  too many ruled: the limit is {RULED_LIMIT:.0%} of a file\n")
    if result.uncovered:
        out.write(f"  no checker for: {_listed(result.uncovered)}\n")
    if result.failures:
        out.write(f"  failed {len(result.failures)}\n")
    for case_id, difference in result.failures[:show]:
        indented = difference.replace("\n", "\n      ")
        out.write(f"    {case_id}\n      {indented}\n")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
