"""From history to amounts: percentile, margin, confidence, floor, in that order, for many aggregates at once.

Target, lower and upper bound are one percentile each. The margin is added to all three; the bounds are then widened
by how little is known (few samples, or a short time), so that a young recommendation moves nothing it should not.
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
from trimtab.decide.vertical.histogram.int64_times import NEVER
from trimtab.decide.vertical.histogram.matrix import HistogramMatrix
from trimtab.decide.vertical.histogram.percentiles import EMPTY
from trimtab.model.vpa.types import ContainerResourcePolicy

Bound = Literal["target", "lower_bound", "upper_bound"]
BOUNDS: Final[tuple[Bound, ...]] = ("target", "lower_bound", "upper_bound")

_MINUTE_NS: Final = 60 * 10**9
_LONGEST: Final = 2**63 - 1
_UPPER_MULTIPLIER: Final = 1.0
_LOWER_MULTIPLIER: Final = 0.001
_UPPER_EXPONENT: Final = 1
_LOWER_EXPONENT: Final = -2


@dataclass(frozen=True)
class Percentiles:
    """Which share of usage each bound covers."""

    target: float = 0.9
    lower_bound: float = 0.5
    upper_bound: float = 0.95

    @property
    def shares(self) -> tuple[float, float, float]:
        """The three shares in the order of `BOUNDS`."""
        return self.target, self.lower_bound, self.upper_bound


@dataclass(frozen=True)
class ResourceSettings:
    """How one resource is estimated."""

    percentiles: Percentiles = Percentiles()
    confidence_interval_ns: int = DAY_NS
    """The span of history that counts as full confidence of 1."""


@dataclass(frozen=True)
class EstimatorSettings:
    """How containers are estimated; each default is upstream's flag."""

    cpu: ResourceSettings = field(default_factory=ResourceSettings)
    memory: ResourceSettings = field(default_factory=ResourceSettings)
    safety_margin: float = 0.15
    """What is added to every percentile, as a share of it."""

    def for_container(self, policy: ContainerResourcePolicy | None) -> "EstimatorSettings":
        """Return the settings with what a container's policy sets for itself (fields of our own)."""
        if policy is None:
            return self
        own = {
            bound: value.as_float()
            for bound in BOUNDS
            if (value := getattr(policy, f"{bound}_percentile")) is not None
        }
        margin = policy.safety_margin_fraction
        if not own and margin is None:
            return self
        return EstimatorSettings(
            cpu=replace(self.cpu, percentiles=replace(self.cpu.percentiles, **own)),
            memory=replace(self.memory, percentiles=replace(self.memory.percentiles, **own)),
            safety_margin=self.safety_margin if margin is None else margin.as_float(),
        )


@dataclass(frozen=True)
class Estimates:
    """One resource of many aggregates, step by step; arrays are [bounds x aggregates] in the order of `BOUNDS`."""

    shares: tuple[float, ...]
    buckets: Ints
    """Where each percentile lies; -1 without samples."""
    usage: Ints
    """The end of that bucket as an amount."""
    margins: Ints
    multipliers: Floats
    floors: Ints
    amounts: Ints
    samples: Ints
    """How many CPU samples there were of each aggregate: what confidence is counted by."""

    @cached_property
    def listed(self) -> list[list[int]]:
        """The amounts as plain numbers."""
        listed: list[list[int]] = self.amounts.tolist()
        return listed


def estimate_cpu(table: AggregateTable, rows: Ints, settings: EstimatorSettings, floors: Ints) -> Estimates:
    """Estimate millicores for some aggregates, each with its floor."""
    return _estimate(table, table.cpu, rows, settings, floors)


def estimate_memory(
    table: AggregateTable, rows: Ints, settings: EstimatorSettings, floors: Ints
) -> Estimates:
    """Estimate bytes for some aggregates, each with its floor."""
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
    """Return how much is known: the lesser of the intervals covered and of the samples an interval should have."""
    first, last = table.first[rows], table.last[rows]
    known = (first != NEVER) & (last != NEVER)
    span = np.where(known, last - np.where(known, first, 0), np.where(last == first, 0, _LONGEST))
    span = np.where((first != NEVER) & (last == NEVER), -_LONGEST, span)
    minutes = float(interval_ns // _MINUTE_NS) + float(interval_ns % _MINUTE_NS) / float(_MINUTE_NS)
    with np.errstate(divide="ignore", invalid="ignore"):
        lifespan: Floats = span / np.float64(interval_ns)
        samples: Floats = table.count[rows] / np.float64(minutes)
    return np.minimum(lifespan, samples)


def confidence_multipliers(known: Floats) -> Floats:
    """Return what each bound is multiplied with, as [bounds x aggregates]; the target stays as it is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = go_math.pow_whole_array(1.0 + _UPPER_MULTIPLIER / known, _UPPER_EXPONENT)
        lower = go_math.pow_whole_array(1.0 + _LOWER_MULTIPLIER / known, _LOWER_EXPONENT)
    return np.stack([np.ones_like(known), lower, upper])
