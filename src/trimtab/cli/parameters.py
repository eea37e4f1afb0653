"""The types of options: durations, numbers, names."""

import math
from datetime import timedelta
from typing import Any

import click

from trimtab.model.times import parse_duration


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


class Timeout(Duration):
    """A duration, or seconds without a unit, as kubectl's `--request-timeout`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse the text."""
        is_plain = isinstance(value, str) and value.isascii() and value.isdigit()
        return super().convert(f"{value}s" if is_plain else value, param, ctx)


plugins_option = click.option(
    "--plugins",
    type=Names(),
    default="",
    metavar="NAME,...",
    help="Plug-ins to load, such as example.com/NotDraining.",
)
