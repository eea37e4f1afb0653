"""What is kept for a VPA whose amounts come from an estimator: its memory, its last answers, and samples that wait for it.

A VPA of the built-in recommender has none of this.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.model.core.pod import CPU
from trimtab.model.times import SECOND_NS
from trimtab.plugins.estimator import MOST_SAMPLES, Amounts, EstimatorInput, UsageSample

if TYPE_CHECKING:
    from trimtab.decide.vertical.cluster_state.containers import UsageRows
    from trimtab.decide.vertical.cluster_state.vpa import VPAState

RECORD_FORMAT = 1


class EstimateRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One call of an estimator: what it saw, and what it answered."""

    format: int = RECORD_FORMAT
    estimator: str
    version: str
    seen: EstimatorInput
    amounts: Mapping[str, Amounts] = {}
    reason: str = ""
    memory: Any = None
    failure: str = ""
    """Why there is no usable answer, empty if there is one."""


class SavedEstimate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The last answer of an estimator and its memory, as a checkpoint holds them."""

    estimator: str
    version: str = ""
    at: float = 0.0
    """Seconds since 1970."""
    amounts: Mapping[str, Amounts] = {}
    reason: str = ""
    memory: Any = None


class WaitingSamples:
    """The samples of a container since the last answer. The oldest are dropped if there are too many."""

    __slots__ = ("missed", "samples")

    def __init__(self) -> None:
        self.samples: deque[UsageSample] = deque(maxlen=MOST_SAMPLES)
        self.missed = 0

    def add(self, sample: UsageSample) -> None:
        """Add a sample."""
        self.missed += len(self.samples) == MOST_SAMPLES
        self.samples.append(sample)

    def clear(self) -> None:
        """Drop the samples that the estimator has seen."""
        self.samples.clear()
        self.missed = 0


class EstimatorState:
    """What is kept for one estimator of a VPA, by container."""

    def __init__(self, estimator: str) -> None:
        self.estimator = estimator
        self.saved: dict[str, SavedEstimate] = {}
        self.waiting: dict[str, WaitingSamples] = {}
        self.records: dict[str, EstimateRecord] = {}
        """The last call for each container."""

    def samples_of(self, container: str) -> WaitingSamples:
        """Return the samples of a container that wait for the next call."""
        return self.waiting.setdefault(container, WaitingSamples())


def estimator_state(vpa: "VPAState", estimator: str) -> EstimatorState:
    """Return what is kept for the estimator of a VPA. Another estimator starts with nothing."""
    if vpa.estimator is None or vpa.estimator.estimator != estimator:
        vpa.estimator = EstimatorState(estimator)
    return vpa.estimator


def keep_samples(
    vpa: "VPAState", estimator: str, aggregates: Ints, resource: str, usage: "UsageRows"
) -> None:
    """Keep the samples of a VPA for its estimator. `aggregates` has the aggregate's row of each sample."""
    containers = {aggregate.row: key.container for key, aggregate in vpa.aggregates.items()}
    if not containers:
        return
    chosen = np.flatnonzero(np.isin(aggregates, list(containers)))
    kept, unit = estimator_state(vpa, estimator), 1000.0 if resource == CPU else 1.0
    rows, amounts, moments = (values[chosen].tolist() for values in (aggregates, usage.amounts, usage.times))
    for row, amount, moment in zip(rows, amounts, moments, strict=True):
        kept.samples_of(containers[row]).add(UsageSample(moment / SECOND_NS, resource, amount / unit))
