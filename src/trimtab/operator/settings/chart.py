"""The settings of the chart: `settings: {KEY: VALUE}` for all programs, and a map of one program."""

from collections.abc import Iterator
from typing import Final

from trimtab.operator.settings.declare import ADAPTER_COMMAND, COMMAND, Setting
from trimtab.operator.settings.settings import declared

PROGRAMS: Final = {
    "horizontal": {COMMAND, "horizontal"},
    "recommender": {COMMAND, "recommender"},
    "updater": {COMMAND, "updater", "roles"},
    "admission": {COMMAND, "admission"},
    "adapter": {ADAPTER_COMMAND},
    "dashboard": {COMMAND, "dashboard"},
}
"""What runs in each program of the chart. The adapter is `trimtab adapter`, the others are `trimtab run`."""


def chart_settings() -> Iterator[Setting]:
    """Yield the settings, without secrets: those reach a program by its environment, from a Secret."""
    return (each for each in declared() if not each.is_secret)


def programs_that_read(setting: Setting) -> set[str]:
    """Return the programs that get the flag of a setting."""
    return {program for program, runs in PROGRAMS.items() if runs & setting.read_by}
