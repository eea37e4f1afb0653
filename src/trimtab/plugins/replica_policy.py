"""The protocol of replica policies: a proposal of replicas beside those of the metrics.

A policy is a pure function. The largest proposal counts; windows, rates, bounds and the rules of zero apply to it afterwards:

    def at_least_three(seen: ReplicaPolicyInput) -> ReplicaProposal:
        return ReplicaProposal(replicas=3, reason="never fewer than 3")

`replicas=None` asks for nothing. `memory` is small JSON that the policy sees again in the next decision.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Protocol

import msgspec

from trimtab.plugins.answers import check_memory, check_reason
from trimtab.plugins.errors import WrongAnswerError, wrong_type

LARGEST_MEMORY = 1024
"""Bytes of JSON that a policy may remember; it is part of the object's status."""
LARGEST_REPLICAS = 2**31 - 1

_EMPTY: Mapping[str, Any] = {}


class PolicyMetric(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one metric of the spec measured and asks for."""

    name: str
    """The metric's own name, such as `cpu` or `requests_per_second`."""
    type: str
    """Its source, such as `Resource` or `External`."""
    value: float | None = None
    """The value that is compared with the target: percent for a utilization, else in the metric's unit."""
    target: float | None = None
    total: float | None = None
    """The undivided value behind an average, where the metric is one number."""
    replicas: int | None = None
    """What the metric asks for; None if it could not be read."""
    error: str = ""
    """Why the metric could not be read; empty if it could."""


class ReplicaPolicyInput(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything that a policy sees."""

    namespace: str
    name: str
    """The name of the HPA."""
    replicas: int
    """The replicas that the target has."""
    min_replicas: int
    max_replicas: int
    metrics: tuple[PolicyMetric, ...] = ()
    now: float = 0.0
    """The time of the decision, in seconds since 1970."""
    parameters: Mapping[str, Any] = _EMPTY
    """What the object gives the policy."""
    memory: Any = None
    """What the policy returned as its memory before; None at first."""

    def metric(self, name: str) -> PolicyMetric | None:
        """Return the metric of that name."""
        return next((metric for metric in self.metrics if metric.name == name), None)


class ReplicaProposal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer of a policy."""

    replicas: int | None
    """What the policy asks for; None if it asks for nothing."""
    reason: str
    """Why, in one line that does not change while the cause is the same."""
    memory: Any = None
    """JSON of at most 1 KiB that the policy sees in its next decision."""


class ReplicaPolicy(Protocol):
    """Returns the replicas that a policy asks for, with the reason."""

    def __call__(self, seen: ReplicaPolicyInput, /) -> ReplicaProposal:
        """Return the proposal."""
        ...


def check_proposal(answer: Any) -> ReplicaProposal:
    """Return the answer of a policy with its memory as plain JSON, or raise WrongAnswerError."""
    if not isinstance(answer, ReplicaProposal):
        raise wrong_type(answer, "a ReplicaProposal")
    replicas: Any = answer.replicas  # whatever its type says
    if replicas is not None:
        if isinstance(replicas, float) and not isfinite(replicas):
            raise WrongAnswerError(f"{replicas} replicas; 0 to {LARGEST_REPLICAS} are possible")
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise WrongAnswerError(f"replicas of type {type(replicas).__name__}, not a whole number")
        replicas = int.__index__(replicas)  # a plain number, whatever class it has
        if not 0 <= replicas <= LARGEST_REPLICAS:
            raise WrongAnswerError(f"{replicas} replicas; 0 to {LARGEST_REPLICAS} are possible")
    reason = check_reason(answer.reason, missing="a proposal without a reason")
    return ReplicaProposal(
        replicas=replicas, reason=reason, memory=check_memory(answer.memory, largest=LARGEST_MEMORY)
    )
