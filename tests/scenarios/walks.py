"""Records which modules of Trimtab a piece of work enters, and compares them with the architecture page."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import trimtab

SOURCE = Path(trimtab.__file__).parents[1]
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


@contextmanager
def entered_modules() -> Iterator[list[str]]:
    """Collect the files of Trimtab and its lab in the order in which calls enter them."""
    modules: list[str] = []
    root = f"{SOURCE}/trimtab"

    def profile(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(root):
            module = file.removeprefix(f"{SOURCE}/").removeprefix("trimtab/")
            if modules[-1:] != [module]:
                modules.append(module)

    sys.setprofile(profile)
    try:
        yield modules
    finally:
        sys.setprofile(None)


def documented_path(heading: str) -> list[str]:
    """Return the files of the numbered list below a heading of the architecture page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d+\. .*$", section, re.MULTILINE)
    return [file for step in steps for file in re.findall(r"`([\w/]+\.py)`", step)]


def check_path(heading: str, entered: list[str]) -> None:
    """Assert that the documented files were entered, in the documented order."""
    documented = documented_path(heading)
    assert documented
    calls = iter(entered)
    # `in` consumes the iterator, so each file is searched for after the one before it.
    missing = [file for file in documented if file not in calls]
    assert not missing, f"not entered, or not in this order: {missing[0]}"
