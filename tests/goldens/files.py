"""The files of the goldens, and how they differ from what is shown now."""

import difflib
import traceback
from functools import cache
from pathlib import Path

from tests.goldens import horizontal, vertical
from tests.goldens.decision import Decision
from tests.goldens.play import play

FOLDER = Path(__file__).parent / "decisions"
DECISIONS: list[Decision] = [*horizontal.TABLE, *vertical.TABLE]
TABLE = {decision.path: decision for decision in DECISIONS}
"""Every decision, by its file."""


@cache
def shown_now(group: str) -> dict[str, str | Exception]:
    """Play a group once, and return its texts by file, or what a decision raised."""
    decisions = [decision for decision in TABLE.values() if decision.group.name == group]
    return play(decisions[0].group, decisions)


def difference(path: str) -> str:
    """Return the difference between a golden and what is shown now, as a unified diff, or what the decision raised."""
    file = FOLDER / path
    before = file.read_text() if file.exists() else ""
    after = shown_now(TABLE[path].group.name)[path]
    if isinstance(after, Exception):
        return f"{path} cannot be shown: {''.join(traceback.format_exception(after))}"
    names = (f"{path} (golden)", f"{path} (now)")
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), *names))


def renew(path: str) -> None:
    """Write what is shown now, unless the decision raised something."""
    file, text = FOLDER / path, shown_now(TABLE[path].group.name)[path]
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, str):
        file.write_text(text)


def left_over() -> list[str]:
    """Return the files that no decision has."""
    present = [str(file.relative_to(FOLDER)) for file in sorted(FOLDER.rglob("*.txt"))]
    return [path for path in present if path not in TABLE]
