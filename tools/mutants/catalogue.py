"""List the mutants of the packages, sample them by a seed, and know which are equivalent."""

import random
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.mutants.operators import Edit, apply, edits_of

SOURCE = Path("src/trimtab")
PACKAGES = ("decide", "model", "operator", "cluster", "metrics")
"""The packages of a run without PACKAGE. Each gets the same share of the count."""


@dataclass(frozen=True)
class Mutant:
    """One edit of one file."""

    file: str
    edit: Edit
    before: str
    after: str
    """The lines that the edit touches, without the edit and with it, on one line."""

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What names this mutant in `equivalent.toml`: it outlives moved lines."""
        return self.file, self.edit.function, self.edit.operator, self.before, self.after

    @property
    def package(self) -> str:
        """The row of the report: a package, or a half of it where horizontal and vertical are apart."""
        parts = Path(self.file).relative_to(SOURCE).parts
        return "/".join(parts[:2]) if parts[0] in {"decide", "operator"} and len(parts) > 2 else parts[0]

    @property
    def place(self) -> str:
        """The file and line, as editors open it."""
        return f"{self.file}:{self.edit.line}"


def mutants_of(file: Path) -> list[Mutant]:
    """Return all mutants of one file."""
    source = file.read_bytes()
    return [_mutant(str(file), source, edit) for edit in edits_of(source)]


def _mutant(file: str, source: bytes, edit: Edit) -> Mutant:
    start = source.rfind(b"\n", 0, edit.start) + 1
    end = source.find(b"\n", max(edit.end, edit.start))
    tail = source[edit.end : end]
    before = source[start:end]
    after = source[start : edit.start] + edit.text.encode() + tail
    return Mutant(file, edit, " ".join(before.decode().split()), " ".join(after.decode().split()))


def files_of(package: str) -> list[Path]:
    """Return the source files of a package, a folder below it, or one module."""
    place = SOURCE / package
    if place.is_dir():
        return sorted(place.rglob("*.py"))
    module = place.with_suffix(".py")
    if not module.is_file():
        raise SystemExit(
            f"mutants: there is no package, folder or module {place}; try PACKAGE=decide/vertical/update"
        )
    return [module]


def sample(packages: Sequence[str], count: int, seed: str, operators: Sequence[str] = ()) -> list[Mutant]:
    """Return `count` mutants, the same ones for the same seed and sources, of all operators or of some."""
    shares = [count // len(packages) + (place < count % len(packages)) for place in range(len(packages))]
    chosen: list[Mutant] = []
    for package, share in zip(packages, shares, strict=True):
        every = [
            mutant
            for file in files_of(package)
            for mutant in mutants_of(file)
            if not operators or mutant.edit.operator in operators
        ]
        chosen += _balanced(every, share, random.Random(f"{seed}/{package}"))
    return chosen


def _balanced(mutants: Iterable[Mutant], count: int, generator: random.Random) -> list[Mutant]:
    """Draw from each operator in turn, so that no kind of edit crowds out the others."""
    by_operator: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_operator[mutant.edit.operator].append(mutant)
    for group in by_operator.values():
        generator.shuffle(group)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(by_operator.values()):
        for operator in sorted(by_operator):
            if by_operator[operator] and len(chosen) < count:
                mutant = by_operator[operator].pop()
                if is_python(mutant):
                    chosen.append(mutant)
    return chosen


def mutated(mutant: Mutant) -> bytes:
    """Return the source of a mutant."""
    return apply(Path(mutant.file).read_bytes(), mutant.edit)


def is_python(mutant: Mutant) -> bool:
    """Return whether a mutant compiles. An edit may break a line that brackets do not join."""
    try:
        compile(mutated(mutant), mutant.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


@cache
def equivalents(path: Path) -> dict[tuple[str, str, str, str, str], str]:
    """Return the reason of each mutant that is declared equivalent, by its key."""
    entries = tomllib.loads(path.read_text()).get("mutant", [])
    return {
        (entry["file"], entry["function"], entry["operator"], entry["before"], entry["after"]): entry[
            "reason"
        ]
        for entry in entries
    }
