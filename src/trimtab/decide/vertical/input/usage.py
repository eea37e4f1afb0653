"""Adds usage samples and OOM kills to the cluster state, and rejects impossible ones.

A single absurd sample would stay in the histogram and in its checkpoint for days (upstream recommends 1,174 cores after
one). See decision 0021.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId, PodId
from trimtab.decide.vertical.cluster_state.containers import DETACHED, UsageRows
from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.int64_times import to_int64
from trimtab.decide.vertical.input.oom import OOM
from trimtab.model.core.pod import CPU
from trimtab.model.times import SECOND_NS

MAX_CLOCK_SKEW_NS: Final = 60 * SECOND_NS
"""How far a sample's time may be ahead of our clock."""

DISCARDED: Final = "sample discarded (invalid or out of order)"
FROM_THE_FUTURE: Final = "more than a minute ahead of the clock"


@dataclass(frozen=True)
class Capacity:
    """The capacity of a node, the limit of a container's usage."""

    millicores: int
    memory_bytes: int


@dataclass(frozen=True)
class UsageBatch:
    """Samples of a resource of many containers, all lists of one length."""

    containers: Sequence[ContainerId]
    amounts: Sequence[int]
    """Millicores or bytes."""
    times_ns: Sequence[int]
    capacities: Sequence[int] | None = None
    """The capacity of each container's node, None if unknown."""


@dataclass(frozen=True)
class IntakeReport:
    """The result of adding a batch of samples."""

    accepted: int = 0
    discarded: int = 0
    """Negative, or not newer than the container's last sample."""
    above_capacity: int = 0
    from_the_future: int = 0
    unknown: tuple[ContainerId, ...] = field(default=())
    """Containers that are not in the cluster state."""
    usage: UsageRows | None = None
    """The accepted samples."""


def add_usage(state: ClusterState, resource: str, batch: UsageBatch, now_ns: int) -> IntakeReport:
    """Add the samples of a scrape, by container."""
    rows = [state.rows.get(container) for container in batch.containers]
    unknown = tuple(name for name, row in zip(batch.containers, rows, strict=True) if row is None)
    known = np.array([row is not None for row in rows], dtype=np.bool_)
    usage = UsageRows(
        np.array([row for row in rows if row is not None], dtype=np.int64),
        np.array(batch.amounts, dtype=np.int64)[known],
        np.array(batch.times_ns, dtype=np.int64)[known],
    )
    capacities = None if batch.capacities is None else np.array(batch.capacities, dtype=np.int64)[known]
    return replace(add_rows(state, resource, usage, capacities, now_ns), unknown=unknown)


def add_rows(
    state: ClusterState, resource: str, usage: UsageRows, capacities: Ints | None, now_ns: int
) -> IntakeReport:
    """Add samples by container row. `capacities` are those of the containers' nodes."""
    future, excess = _find_impossible(state, usage, capacities, now_ns)
    usage = usage.where(~(future | excess))
    _reattach(state, usage.containers, now_ns)
    table = state.containers
    accepted = table.add_cpu(usage) if resource == CPU else table.add_memory(usage)
    count = int(accepted.sum())
    return IntakeReport(
        accepted=count,
        discarded=len(accepted) - count,
        above_capacity=int(excess.sum()),
        from_the_future=int(future.sum()),
        usage=usage.where(accepted),
    )


def _find_impossible(
    state: ClusterState, usage: UsageRows, capacities: Ints | None, now_ns: int
) -> tuple[np.typing.NDArray[np.bool_], np.typing.NDArray[np.bool_]]:
    none = np.zeros(len(usage.containers), dtype=np.bool_)
    if not state.compat.refuses_impossible_samples:
        return none, none
    future = usage.times > to_int64(now_ns + MAX_CLOCK_SKEW_NS)
    return future, none if capacities is None else ~future & (usage.amounts > capacities)


def _reattach(state: ClusterState, rows: Ints, now_ns: int) -> None:
    for row in rows[state.containers.aggregate[rows] == DETACHED].tolist():
        state.reattach(row, now_ns)


def add_sample(
    state: ClusterState, container: ContainerId, resource: str, amount: int, time_ns: int, now_ns: int
) -> str | None:
    """Add a sample. Return an error if it is rejected."""
    tracked = state.find_container(container)
    if isinstance(tracked, str):
        return tracked
    report = add_usage(state, resource, UsageBatch([container], [amount], [time_ns]), now_ns)
    if report.from_the_future:
        return FROM_THE_FUTURE
    return None if report.accepted else DISCARDED


def record_oom(state: ClusterState, oom: OOM, now_ns: int, capacity: Capacity | None = None) -> str | None:
    """Add an OOM kill, limited by the node's capacity. Return an error if it is rejected."""
    container = ContainerId(PodId(oom.namespace, oom.pod), oom.container)
    tracked = state.find_container(container)
    if isinstance(tracked, str):
        return tracked if container.pod not in state.pods else f"KeyError: {oom.container}"
    if state.compat.refuses_impossible_samples and oom.time_ns > now_ns + MAX_CLOCK_SKEW_NS:
        return FROM_THE_FUTURE
    _reattach(state, np.array([tracked.history.row]), now_ns)
    limit = capacity.memory_bytes if capacity and state.compat.refuses_impossible_samples else None
    error = tracked.history.record_oom(oom.time_ns, oom.memory_bytes, limit)
    return error and f"error while recording OOM for {container}, Reason: {error}"
