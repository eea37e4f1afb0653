"""Whether the values of metrics in two statuses differ visibly."""

from collections.abc import Iterator
from typing import NamedTuple

from trimtab.decide.horizontal.metrics.pods import Tolerance
from trimtab.model.hpa.metric_kinds import current_of, identity_of, target_of
from trimtab.model.hpa.types import MetricSpec, MetricStatus, MetricTarget, MetricValueStatus
from trimtab.model.quantity import Quantity

_NO_TARGET = MetricTarget()


class _Numbers(NamedTuple):
    """A number of two statuses, and its target in the same unit. The target is 0 if it is unknown."""

    old: float
    new: float
    target: float

    def moved_visibly(self, tolerance: Tolerance, share: float) -> bool:
        if abs(self.new - self.old) > share * (self.target or abs(self.old)):
            return True
        return _band(self.old, self.target, tolerance) != _band(self.new, self.target, tolerance)


def have_same_metrics(old: tuple[MetricStatus, ...], new: tuple[MetricStatus, ...]) -> bool:
    """Return whether two statuses show the same metrics, with values of the same kinds."""
    return len(old) == len(new) and all(map(_is_same_metric, old, new))


def is_visible_change(
    old: tuple[MetricStatus, ...],
    new: tuple[MetricStatus, ...],
    specs: tuple[MetricSpec, ...],
    tolerance: Tolerance,
    share: float,
) -> bool:
    """Return whether a value moved by more than a share of its target, or into or out of the tolerance."""
    if not have_same_metrics(old, new):
        return True
    # Where metrics were not computed, such as at a paused workload, entries and metrics do not pair.
    targets = (
        [target_of(spec) for spec in specs] if len(specs) == len(new) else [_NO_TARGET for _status in new]
    )
    return any(
        numbers.moved_visibly(tolerance, share)
        for before, after, target in zip(old, new, targets, strict=True)
        if before != after
        for numbers in _numbers(current_of(before), current_of(after), target)
    )


def _is_same_metric(old: MetricStatus, new: MetricStatus) -> bool:
    if old == new:
        return True
    before, after = current_of(old), current_of(new)
    return identity_of(old) == identity_of(new) and (
        (before.value is None) == (after.value is None)
        and (before.average_value is None) == (after.average_value is None)
        and (before.average_utilization is None) == (after.average_utilization is None)
    )


def _numbers(old: MetricValueStatus, new: MetricValueStatus, target: MetricTarget) -> Iterator[_Numbers]:
    utilization = target.average_utilization or 0
    before, after = old.average_utilization or 0, new.average_utilization or 0
    yield _Numbers(before, after, utilization)
    average = _number(target.average_value)
    if target.average_value is None and (before or after):
        # The requests of the pods say which average the utilization asks for.
        average = _number((old if before else new).average_value) * utilization / (before or after)
    yield _Numbers(_number(old.average_value), _number(new.average_value), average)
    yield _Numbers(_number(old.value), _number(new.value), _number(target.value))


def _band(value: float, target: float, tolerance: Tolerance) -> int:
    """Return -1, 0 or 1: below the tolerance, within it, or above."""
    if not target or tolerance.covers(value / target):
        return 0
    return 1 if value > target else -1


def _number(quantity: Quantity | None) -> float:
    return 0.0 if quantity is None else quantity.as_float()
