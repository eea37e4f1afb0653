"""Print which mutants survived and the score of each package."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

from tools.mutants.catalogue import Mutant

KILLED, SURVIVED, UNCOVERED, EQUIVALENT, BROKEN = "killed", "survived", "uncovered", "equivalent", "not run"


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant."""

    mutant: Mutant
    outcome: str
    detail: str = ""


def print_report(verdicts: Iterable[Verdict], out: TextIO) -> None:
    """Print survivors with a diff, then a row for each package, then one for each operator."""
    verdicts = list(verdicts)
    for verdict in sorted(verdicts, key=lambda verdict: (verdict.mutant.file, verdict.mutant.edit.line)):
        if verdict.outcome in {SURVIVED, UNCOVERED, BROKEN}:
            _print_survivor(verdict, out)
    out.write(
        f"\n{'package':24}{'tried':>7}{'killed':>8}{'survived':>10}{'uncovered':>11}{'equivalent':>12}{'score':>7}\n"
    )
    rows: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        rows[verdict.mutant.package].append(verdict)
        if "/" in verdict.mutant.package:
            rows[verdict.mutant.package.partition("/")[0]].append(verdict)
    for package in sorted(rows):
        _print_row(package, rows[package], out)
    _print_row("all", verdicts, out)
    by_operator: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_operator[verdict.mutant.edit.operator].append(verdict)
    parts = [f"{operator} {_killed(group)}/{len(group)}" for operator, group in sorted(by_operator.items())]
    out.write(f"\nkilled/tried by operator: {', '.join(parts)}\n")


def _print_survivor(verdict: Verdict, out: TextIO) -> None:
    mutant = verdict.mutant
    out.write(f"\n{mutant.place}: {mutant.edit.operator} in {mutant.edit.function or 'a definition'}: ")
    out.write(f"{verdict.outcome} ({verdict.detail})\n  - {mutant.before}\n  + {mutant.after}\n")


def _print_row(name: str, verdicts: list[Verdict], out: TextIO) -> None:
    counts = Counter(verdict.outcome for verdict in verdicts)
    tried = len(verdicts) - counts[BROKEN]
    judged = tried - counts[EQUIVALENT]
    score = f"{100 * counts[KILLED] / judged:.0f} %" if judged else "-"
    out.write(f"{name:24}{tried:>7}{counts[KILLED]:>8}{counts[SURVIVED]:>10}{counts[UNCOVERED]:>11}")
    out.write(f"{counts[EQUIVALENT]:>12}{score:>7}\n")


def _killed(verdicts: list[Verdict]) -> int:
    return sum(verdict.outcome == KILLED for verdict in verdicts)
