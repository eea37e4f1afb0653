"""Reduces several series of one object to one value, because an HPA accepts exactly one."""

from collections.abc import Sequence
from enum import StrEnum

from trimtab.adapter.sources.source import CustomSample
from trimtab.model.quantity import Quantity
from trimtab.model.status import StatusError


class Collapse(StrEnum):
    """How several series of one object are reduced to one value."""

    SUM = "sum"
    AVERAGE = "average"
    MAX = "max"
    MIN = "min"
    REFUSE = "refuse"


def collapse(samples: Sequence[CustomSample], how: Collapse) -> list[CustomSample]:
    """Return one sample per object, sorted by name. Its time is that of the oldest series."""
    by_name: dict[str, list[CustomSample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    return [_reduce(by_name[name], how) for name in sorted(by_name)]


def _reduce(samples: Sequence[CustomSample], how: Collapse) -> CustomSample:
    first = samples[0]
    if len(samples) == 1:
        return first
    if how is Collapse.REFUSE:
        raise StatusError(
            503,
            f"{len(samples)} series match {first.name}; narrow the selector or let the rule collapse them",
        )
    windows = [sample.window_seconds for sample in samples if sample.window_seconds is not None]
    return CustomSample(
        first.name,
        _value([sample.value for sample in samples], how),
        min(sample.timestamp for sample in samples),
        max(windows, default=None),
    )


def _value(values: Sequence[Quantity], how: Collapse) -> Quantity:
    match how:
        case Collapse.MAX:
            return max(values)
        case Collapse.MIN:
            return min(values)
        case _:
            total = sum(value.nanos for value in values)
            return Quantity(total if how is Collapse.SUM else total // len(values), values[0].format)
