"""Several series for one object: the adapter has to make one value of them, because an autoscaler takes exactly one."""

from collections.abc import Sequence
from enum import StrEnum

from trimtab.adapter.errors import Unavailable
from trimtab.adapter.sources.source import CustomSample
from trimtab.model.quantity import Quantity


class Collapse(StrEnum):
    """How several series of one object become one value."""

    SUM = "sum"
    AVERAGE = "average"
    MAX = "max"
    MIN = "min"
    REFUSE = "refuse"


def collapse(samples: Sequence[CustomSample], how: Collapse) -> list[CustomSample]:
    """Return one sample per object, in the order of their names; it is as old as the oldest series in it."""
    by_name: dict[str, list[CustomSample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    return [_one(by_name[name], how) for name in sorted(by_name)]


def _one(samples: Sequence[CustomSample], how: Collapse) -> CustomSample:
    first = samples[0]
    if len(samples) == 1:
        return first
    if how is Collapse.REFUSE:
        raise Unavailable(
            f"{len(samples)} series match {first.name}; narrow the selector or let the rule collapse them"
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
            written = values[0].format
            return Quantity(total if how is Collapse.SUM else total // len(values), written)
