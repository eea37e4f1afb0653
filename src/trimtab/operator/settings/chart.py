"""The settings as the chart takes them: `settings: {KEY: VALUE}` for all programs, and a map of one program."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

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


class ChartSetting(NamedTuple):
    """A setting in the chart."""

    key: str
    """The flag without its dashes."""
    schema: dict[str, Any]
    """The JSON schema of a value."""
    programs: tuple[str, ...]
    """The programs that read the setting, and so get its flag."""
    per_program: bool
    """Whether the map of a program may have the key, too."""
    is_wired: bool
    """Whether the installation sets the flag, so that no map may have the key."""


def chart_settings() -> Iterator[ChartSetting]:
    """Yield the settings, without secrets: those reach a program by its environment, from a Secret."""
    for each in declared():
        if not each.is_secret:
            yield ChartSetting(each.key, each.json_schema(), _readers(each), each.per_program, each.is_wired)


def _readers(declared_setting: Setting) -> tuple[str, ...]:
    return tuple(program for program, runs in PROGRAMS.items() if runs & declared_setting.read_by)
