"""The results of a run as lines for people and as a file for the next program."""

import json
from collections.abc import Sequence
from pathlib import Path

from tools.upstream.cases import Result


def line(result: Result) -> str:
    """Return a line that tells how one test ended."""
    word = "pass" if result.has_passed else "FAIL"
    return f"{word} {result.seconds:5.0f} s  {result.case.short_name}" + (
        f"\n     {result.why}\n     {result.log}" if result.why else ""
    )


def summary(results: Sequence[Result], controller: str) -> str:
    """Return how many tests passed, with the controller that was tested."""
    passed = sum(result.has_passed for result in results)
    return f"{controller}: {passed} of {len(results)} passed"


def save(results: Sequence[Result], controller: str, path: Path) -> None:
    """Write the results as JSON, ordered by name."""
    rows = [
        {
            "test": result.case.short_name,
            "passed": result.has_passed,
            "seconds": round(result.seconds),
            "why": result.why,
        }
        for result in sorted(results, key=lambda result: result.case.short_name)
    ]
    path.write_text(json.dumps({"controller": controller, "tests": rows}, indent=1) + "\n")
