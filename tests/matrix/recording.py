"""Settings that note which of them are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from trimtab.operator.settings.settings import Settings, declared

NAMES = frozenset(each.name for each in declared())


class _Recording:
    """Notes the settings that are read of an object."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in NAMES and not Recorded.is_paused:
            Recorded.seen.add(name)
        return super().__getattribute__(name)


class Recorded(_Recording, Settings):
    """Settings that note what is read of them and of their groups."""

    __slots__ = ()
    seen: ClassVar[set[str]] = set()
    is_paused: ClassVar[bool] = False

    @property
    def lease_name(self) -> str:
        """Return the name. It follows from the loops, which reads none of their settings."""
        Recorded.seen.add("leader_elect_resource_name")
        with paused():
            return Settings.lease_name.fget(self)  # type: ignore[attr-defined, no-any-return] # a property


def recorded(settings: Settings) -> Recorded:
    """Return the settings as settings that note what is read of them."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    groups = {name: _recording(value) for name, value in values.items() if is_dataclass(value)}
    return Recorded(**{**values, **groups})


def _recording(group: Any) -> Any:
    kind = type(type(group).__name__, (_Recording, type(group)), {"__slots__": ()})
    return kind(**{field.name: getattr(group, field.name) for field in fields(group)})


@contextmanager
def paused() -> Iterator[None]:
    """Note nothing while all settings are looked at at once."""
    before, Recorded.is_paused = Recorded.is_paused, True
    try:
        yield
    finally:
        Recorded.is_paused = before


def unnoticed(function: Any) -> Any:
    """Return the function, whose readings are not noted."""

    def call(*arguments: Any, **named: Any) -> Any:
        with paused():
            return function(*arguments, **named)

    return call
