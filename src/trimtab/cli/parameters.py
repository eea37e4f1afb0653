"""The types of options: durations, numbers, names."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from trimtab.model.times import parse_duration

_Command = TypeVar("_Command", bound=Callable[..., Any] | click.Command)


class Duration(click.ParamType[timedelta]):
    """A duration such as 15s or 5m."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse the text."""
        if isinstance(value, timedelta):
            return value
        try:
            span = parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if span < timedelta():
            self.fail(f"{value!r} is negative", param, ctx)
        return span


class Number(click.types.FloatParamType):
    """A finite number. Python also parses `nan` and `inf`, which no setting can use."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the text."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class Names(click.ParamType[tuple[str, ...]]):
    """Names, separated by commas."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split the text."""
        if isinstance(value, tuple):
            return value
        return tuple(part.strip() for part in str(value).split(",") if part.strip())


class ListOption(click.Option):
    """An option for a list or a map. Its values add up if it is repeated, as in programs of Kubernetes."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.multiple = True  # set afterwards, because the default is one text and no list of texts

    def value_from_envvar(self, ctx: click.Context) -> str | None:
        """Return the variable as it is. Click would split it at spaces."""
        return self.resolve_envvar_value(ctx)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Parse `a` and `b,c` as `a,b,c`."""
        text = ",".join(filter(None, value)) if isinstance(value, (list, tuple)) else value
        return None if text is None else self.type(text, param=self, ctx=ctx)


class Timeout(Duration):
    """A duration, or seconds without a unit, as kubectl's `--request-timeout`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse the text."""
        is_plain = isinstance(value, str) and value.isascii() and value.isdigit()
        return super().convert(f"{value}s" if is_plain else value, param, ctx)


def plugins_option_with(words: str) -> Callable[[_Command], _Command]:
    """Return the option `--plugins` of a command, with its help."""
    return click.option("--plugins", cls=ListOption, type=Names(), default="", metavar="NAME,...", help=words)


plugins_option = plugins_option_with("Plug-ins to load, such as example.com/NotDraining.")
