"""The protocol of estimators: the resources that a container of a VPA should request.

An estimator is a pure function. A VPA chooses it with `spec.recommenders`. Policies, maximums and LimitRanges apply afterwards:

    def p99(seen: EstimatorInput) -> Estimate:
        cores = seen.histograms["cpu"].percentile(0.99)
        return Estimate(amounts={"cpu": Amounts(lower=cores, target=cores, upper=2 * cores)}, reason="the 99th percentile")

A resource without amounts gets those of Trimtab itself. `memory` is small JSON that the estimator sees again in the next call. It is
saved with the checkpoint of the container. With `declare(needs_samples=True)` an estimator also sees each sample once, so
that it can remember what a histogram forgets.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Protocol

import msgspec

from trimtab.plugins.answers import LONGEST_REASON, check_memory, check_reason
from trimtab.plugins.errors import WrongAnswerError, wrong_type

RESOURCES = ("cpu", "memory")
LARGEST_MEMORY = 16 * 1024
"""Bytes of JSON that an estimator may remember per container; it is part of the checkpoint."""
LARGEST_AMOUNTS = {"cpu": 8192.0, "memory": float(64 * 2**40)}
"""Cores and bytes of the largest machine that Linux runs on."""
MOST_SAMPLES = 4096
"""Samples of a container that wait for the next call."""

_EMPTY: Mapping[str, Any] = {}


class UsageHistogram(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of one resource, in cores or bytes. The weight of a sample halves with every half-life."""

    ends: tuple[float, ...] = ()
    """The upper ends of the buckets that have samples, ascending."""
    weights: tuple[float, ...] = ()

    def percentile(self, share: float) -> float:
        """Return the end of the bucket that holds a share of all weight, or 0 without samples."""
        threshold, sum_so_far = share * sum(self.weights), 0.0
        for end, weight in zip(self.ends, self.weights, strict=True):
            sum_so_far += weight
            if sum_so_far >= threshold:
                return end
        return self.ends[-1] if self.ends else 0.0


class UsageSample(msgspec.Struct, frozen=True, array_like=True):
    """The usage of one container at one time."""

    time: float
    """Seconds since 1970."""
    resource: str
    amount: float
    """Cores or bytes. After an out-of-memory kill, what the container needed at least."""


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a resource, in cores or bytes. Pods between lower and upper are left alone."""

    lower: float
    target: float
    upper: float


class EstimatorInput(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an estimator sees."""

    namespace: str
    name: str
    """The name of the VPA."""
    container: str
    now: float
    """The time of the recommendation, in seconds since 1970."""
    histograms: Mapping[str, UsageHistogram]
    """The usage of all pods that the VPA learns from, by resource."""
    built_in: Mapping[str, Amounts] = _EMPTY
    """What Trimtab itself would recommend, by resource."""
    first_sample: float | None = None
    last_sample: float | None = None
    sample_count: int = 0
    samples: tuple[UsageSample, ...] = ()
    """With `needs_samples`, the samples since the last answer, in order of arrival."""
    missed_samples: int = 0
    """Samples since the last answer that were too many to keep."""
    memory: Any = None
    """What the estimator returned as its memory before; None at first."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of an estimator."""

    amounts: Mapping[str, Amounts]
    """By resource. A resource that is left out gets Trimtab's own amounts."""
    reason: str
    """Why, in one line that does not change while the cause is the same."""
    memory: Any = None
    """JSON of at most 16 KiB that the estimator sees in its next call."""


class Estimator(Protocol):
    """Returns what a container should request, with the reason."""

    def __call__(self, seen: EstimatorInput, /) -> Estimate:
        """Return the amounts."""
        ...


def check_estimate(answer: Any) -> Estimate:
    """Return the answer of an estimator with its memory as plain JSON, or raise WrongAnswerError."""
    if not isinstance(answer, Estimate):
        raise wrong_type(answer, "an Estimate")
    reason = check_reason(answer.reason, missing="an estimate without a reason")
    if not isinstance(answer.amounts, Mapping):
        raise WrongAnswerError(f"amounts of type {type(answer.amounts).__name__}, not a mapping")
    amounts: dict[str, Amounts] = {}
    for resource, bounds in answer.amounts.items():
        if resource not in RESOURCES:
            raise WrongAnswerError(
                f"amounts of {str(resource)[:LONGEST_REASON]!r}; cpu and memory are possible"
            )
        amounts[resource] = _checked(resource, bounds)
    return Estimate(
        amounts=amounts,
        reason=reason,
        memory=check_memory(answer.memory, largest=LARGEST_MEMORY),
    )


def _checked(resource: str, bounds: Any) -> Amounts:
    if not isinstance(bounds, Amounts):
        raise WrongAnswerError(f"{resource} of type {type(bounds).__name__}, not Amounts")
    largest = LARGEST_AMOUNTS[resource]
    for name in ("lower", "target", "upper"):
        amount = getattr(bounds, name)
        if isinstance(amount, bool) or not isinstance(amount, int | float):
            raise WrongAnswerError(f"{resource} {name} of type {type(amount).__name__}, not a number")
        if isinstance(amount, int) and abs(amount) > largest:
            raise WrongAnswerError(
                f"{resource} {name} above {largest:g}"
            )  # its digits may be too many to print
        if not isfinite(amount) or not 0 <= amount <= largest:
            raise WrongAnswerError(f"{resource} {name}: {amount:g}; 0 to {largest:g} are possible")
    if not bounds.lower <= bounds.target <= bounds.upper:
        raise WrongAnswerError(
            f"{resource}: lower {bounds.lower:g}, target {bounds.target:g}, upper {bounds.upper:g}, which are not in order"
        )
    return Amounts(lower=float(bounds.lower), target=float(bounds.target), upper=float(bounds.upper))
