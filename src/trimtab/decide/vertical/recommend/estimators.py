"""Estimates amounts from histograms: percentile, margin, confidence, floor, for many aggregates at once.

Target, lower and upper bound are one percentile each. The margin is added to all three. Low confidence (few samples, or
a short time) then widens the bounds, so that a young recommendation causes no updates.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import DAY_NS, AggregateTable
from trimtab.decide.vertical.cluster_state.amounts import amounts_from_floats
from trimtab.decide.vertical.histogram import go_math
from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.decide.vertical.histogram.int64_times import LATEST, NEVER
from trimtab.decide.vertical.histogram.matrix import HistogramMatrix
from trimtab.decide.vertical.histogram.percentiles import EMPTY
from trimtab.model.vpa.types import ContainerResourcePolicy

Bound = Literal["target", "lower_bound", "upper_bound"]
BOUNDS: Final[tuple[Bound, ...]] = ("target", "lower_bound", "upper_bound")

_MINUTE_NS: Final = 60 * 10**9
_UPPER_MULTIPLIER: Final = 1.0
_LOWER_MULTIPLIER: Final = 0.001
_UPPER_EXPONENT: Final = 1
_LOWER_EXPONENT: Final = -2


@dataclass(frozen=True)
class Percentiles:
    """The share of usage that each bound covers."""

    target: float = 0.9
    lower_bound: float = 0.5
    upper_bound: float = 0.95

    @property
    def shares(self) -> tuple[float, float, float]:
        """The three shares in the order of `BOUNDS`."""
        return self.target, self.lower_bound, self.upper_bound


@dataclass(frozen=True)
class ResourceSettings:
    """Settings of the estimate of a resource."""

    percentiles: Percentiles = Percentiles()
    confidence_interval_ns: int = DAY_NS
    """The span of history that gives a confidence of 1."""


@dataclass(frozen=True)
class EstimatorSettings:
    """Settings of the estimate of a container, with upstream's defaults."""

    cpu: ResourceSettings = field(default_factory=ResourceSettings)
    memory: ResourceSettings = field(default_factory=ResourceSettings)
    safety_margin: float = 0.15
    """The share of every percentile that is added to it."""

    def for_container(self, policy: ContainerResourcePolicy | None) -> "EstimatorSettings":
        """Return the settings with the overrides of a container's policy (fields that upstream does not have)."""
        if policy is None:
            return self
        overrides = {
            bound: value.as_float()
            for bound in BOUNDS
            if (value := getattr(policy, f"{bound}_percentile")) is not None
        }
        margin = policy.safety_margin_fraction
        if not overrides and margin is None:
            return self
        return EstimatorSettings(
            cpu=replace(self.cpu, percentiles=replace(self.cpu.percentiles, **overrides)),
            memory=replace(self.memory, percentiles=replace(self.memory.percentiles, **overrides)),
            safety_margin=self.safety_margin if margin is None else margin.as_float(),
        )


@dataclass(frozen=True)
class Estimates:
    """The estimates of a resource, step by step, as arrays of [`BOUNDS` x aggregates]."""

    shares: tuple[float, ...]
    buckets: Ints
    """The bucket of each percentile, -1 without samples."""
    usage: Ints
    """The end of that bucket as an amount."""
    margins: Ints
    multipliers: Floats
    floors: Ints
    amounts: Ints
    samples: Ints
    """The number of CPU samples of each aggregate, which confidence depends on."""

    @cached_property
    def listed(self) -> list[list[int]]:
        """The amounts as lists of Python integers."""
        listed: list[list[int]] = self.amounts.tolist()
        return listed

    @cached_property
    def is_measured(self) -> list[bool]:
        """Whether each aggregate has a sample of the resource."""
        measured: list[bool] = (self.buckets[0] >= 0).tolist()
        return measured


def estimate_cpu(table: AggregateTable, rows: Ints, settings: EstimatorSettings, floors: Ints) -> Estimates:
    """Estimate millicores of aggregates, each with its floor."""
    return _estimate(table, table.cpu, rows, settings, floors)


def estimate_memory(
    table: AggregateTable, rows: Ints, settings: EstimatorSettings, floors: Ints
) -> Estimates:
    """Estimate bytes of aggregates, each with its floor."""
    return _estimate(table, table.memory, rows, settings, floors)


def _estimate(
    table: AggregateTable, matrix: HistogramMatrix, rows: Ints, settings: EstimatorSettings, floors: Ints
) -> Estimates:
    is_cpu = matrix is table.cpu
    resource = settings.cpu if is_cpu else settings.memory
    shares = resource.percentiles.shares
    buckets = matrix.percentiles(shares, rows)
    ends = np.where(buckets == EMPTY, 0.0, matrix.buckets.ends[buckets])
    usage = amounts_from_floats(ends * np.float64(1000.0 if is_cpu else 1.0))
    # The margin is cut to a whole amount before it is added.
    margins = amounts_from_floats(usage * np.float64(settings.safety_margin))
    multipliers = confidence_multipliers(confidence(table, rows, resource.confidence_interval_ns))
    with np.errstate(invalid="ignore", over="ignore"):
        widened = amounts_from_floats((usage + margins) * multipliers)
    return Estimates(
        shares, buckets, usage, margins, multipliers, floors, np.maximum(widened, floors), table.count[rows]
    )


def confidence(table: AggregateTable, rows: Ints, interval_ns: int) -> Floats:
    """Return the confidence: intervals of history, or of one sample per minute, whichever is less."""
    first, last = table.first[rows], table.last[rows]
    known = (first != NEVER) & (last != NEVER)
    span = np.where(known, last - np.where(known, first, 0), np.where(last == first, 0, LATEST))
    span = np.where((first != NEVER) & (last == NEVER), -LATEST, span)
    minutes = float(interval_ns // _MINUTE_NS) + float(interval_ns % _MINUTE_NS) / float(_MINUTE_NS)
    with np.errstate(divide="ignore", invalid="ignore"):
        lifespan: Floats = span / np.float64(interval_ns)
        samples: Floats = table.count[rows] / np.float64(minutes)
    return np.minimum(lifespan, samples)


def confidence_multipliers(confidences: Floats) -> Floats:
    """Return the multiplier of each bound as [bounds x aggregates], 1 for the target."""
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = go_math.pow_whole_array(1.0 + _UPPER_MULTIPLIER / confidences, _UPPER_EXPONENT)
        lower = go_math.pow_whole_array(1.0 + _LOWER_MULTIPLIER / confidences, _LOWER_EXPONENT)
    return np.stack([np.ones_like(confidences), lower, upper])
