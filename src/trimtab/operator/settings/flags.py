"""How a setting is declared: its flag, its help, its group, and why that default."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Flag:
    """What the command line and the reference page say about a setting."""

    name: str
    help: str
    group: str
    why: str
    aliases: tuple[str, ...] = ()
    """Other names of the flag: upstream's, where ours differs."""
    variables: tuple[str, ...] = ()
    """Environment variables that upstream reads for the same."""

    @property
    def environment(self) -> str:
        """Return the environment variable that sets the same: `--sync-period` is `TRIMTAB_SYNC_PERIOD`."""
        return "TRIMTAB_" + self.name.removeprefix("--").replace("-", "_").upper()


def setting(
    default: Any,
    name: str,
    help: str,  # noqa: A002 - click's own word
    *,
    group: str,
    why: str,
    aliases: tuple[str, ...] = (),
    variables: tuple[str, ...] = (),
) -> Any:
    """Declare one setting."""
    return field(default=default, metadata={"flag": Flag(name, help, group, why, aliases, variables)})
