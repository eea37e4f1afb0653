"""Declares settings: flag, help, group, default, and why that default."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any


@dataclass(frozen=True, slots=True)
class Flag:
    """The flag of a setting, as the command line and the reference page show it."""

    name: str
    help: str
    group: str
    why: str
    aliases: tuple[str, ...] = ()
    """Other names of the flag: upstream's, where ours differs."""
    variables: tuple[str, ...] = ()
    """Environment variables that upstream reads for the same setting."""
    choices: tuple[str, ...] = ()
    """All values that the setting can have. Empty means any text or number."""
    is_list: bool = False
    """Whether a text is a list or a map with commas, so that the flag can be repeated. A tuple always is."""

    @property
    def environment(self) -> str:
        """Return the environment variable of the flag: `--sync-period` has `TRIMTAB_SYNC_PERIOD`."""
        return "TRIMTAB_" + self.name.removeprefix("--").replace("-", "_").upper()


def declare(  # noqa: PLR0913 - keywords of a declaration
    default: Any,
    name: str,
    help: str,  # noqa: A002 - click's own word
    *,
    group: str,
    why: str = "Upstream's default.",
    aliases: tuple[str, ...] = (),
    variables: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
    is_list: bool = False,
    is_secret: bool = False,
) -> Any:
    """Return a dataclass field for a setting. A secret is not part of the `repr` of the settings."""
    flag = Flag(name, help, group, why, aliases, variables, choices, is_list or isinstance(default, tuple))
    return field(default=default, repr=not is_secret, metadata={"flag": flag})


def settings_in(group: str) -> Callable[..., Any]:
    """Return a function that declares the settings of one group of flags."""
    return partial(declare, group=group)


def reject_unknown(settings: Any) -> None:
    """Raise ValueError with the flag's name if a setting has none of its choices.

    `settings` are those of a process or of one group.
    """
    for declared in fields(settings):
        value, flag = getattr(settings, declared.name), declared.metadata.get("flag")
        if flag is None:
            reject_unknown(value)
        elif flag.choices and value not in flag.choices:
            *first, last = filter(None, flag.choices)
            raise ValueError(f"{flag.name}={value} is not known; use {', '.join(first)} or {last}")
