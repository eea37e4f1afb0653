"""Samples and out-of-memory kills on their way into the model, and what is refused at the door.

A sample that cannot be true is refused, not learnt from: one absurd reading would otherwise stay in the histogram,
and in its checkpoint, for days (upstream recommends 1,174 cores after one). See decision 0021.
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

MOST_AHEAD_NS: Final = 60 * SECOND_NS
"""How far ahead of our clock a sample's time may be: clocks differ, a minute at most."""

DISCARDED: Final = "sample discarded (invalid or out of order)"
ABOVE_CAPACITY: Final = "more than the node's capacity"
FROM_THE_FUTURE: Final = "more than a minute ahead of the clock"


@dataclass(frozen=True)
class Capacity:
    """What a node has; no container on it can use more."""

    millicores: int
    memory_bytes: int


@dataclass(frozen=True)
class UsageBatch:
    """One resource's samples of many containers, all lists of one length."""

    containers: Sequence[ContainerId]
    amounts: Sequence[int]
    """Millicores or bytes."""
    times_ns: Sequence[int]
    most: Sequence[int] | None = None
    """The capacity of each container's node; None where capacities are not known."""


@dataclass(frozen=True)
class IntakeReport:
    """What became of a batch of samples."""

    accepted: int = 0
    discarded: int = 0
    """Negative, or not newer than what the container had."""
    above_capacity: int = 0
    from_the_future: int = 0
    unknown: tuple[ContainerId, ...] = field(default=())
    """Containers that the model does not know (yet)."""
    taken: UsageRows | None = None
    """The samples that were accepted."""


def add_usage(state: ClusterState, resource: str, batch: UsageBatch, now_ns: int) -> IntakeReport:
    """Add the samples of one scrape to the model."""
    rows = [state.rows.get(container) for container in batch.containers]
    unknown = tuple(name for name, row in zip(batch.containers, rows, strict=True) if row is None)
    known = np.array([row is not None for row in rows], dtype=np.bool_)
    usage = UsageRows(
        np.array([row for row in rows if row is not None], dtype=np.int64),
        np.array(batch.amounts, dtype=np.int64)[known],
        np.array(batch.times_ns, dtype=np.int64)[known],
    )
    most = None if batch.most is None else np.array(batch.most, dtype=np.int64)[known]
    taken = add_rows(state, resource, usage, most, now_ns)
    return replace(taken, unknown=unknown)


def add_rows(
    state: ClusterState, resource: str, usage: UsageRows, most: Ints | None, now_ns: int
) -> IntakeReport:
    """Add samples of containers that are known by the rows of their state; `most` are their nodes' capacities."""
    future, excess = _impossible(state, usage, most, now_ns)
    usage = usage.where(~(future | excess))
    _reattach(state, usage.containers, now_ns)
    table = state.containers
    accepted = table.add_cpu(usage) if resource == CPU else table.add_memory(usage)
    count = int(accepted.sum())
    taken = usage.where(accepted)
    return IntakeReport(count, len(accepted) - count, int(excess.sum()), int(future.sum()), taken=taken)


def _impossible(
    state: ClusterState, usage: UsageRows, most: Ints | None, now_ns: int
) -> tuple[np.typing.NDArray[np.bool_], np.typing.NDArray[np.bool_]]:
    none = np.zeros(len(usage.containers), dtype=np.bool_)
    if not state.compat.refuses_impossible_samples:
        return none, none
    future = usage.times > to_int64(now_ns + MOST_AHEAD_NS)
    return future, none if most is None else ~future & (usage.amounts > most)


def _reattach(state: ClusterState, rows: Ints, now_ns: int) -> None:
    for row in rows[state.containers.aggregate[rows] == DETACHED].tolist():
        state.reattach(row, now_ns)


def add_sample(
    state: ClusterState, container: ContainerId, resource: str, amount: int, time_ns: int, now_ns: int
) -> str | None:
    """Add one sample; return why it was refused, if it was."""
    tracked = state.find_container(container)
    if isinstance(tracked, str):
        return tracked
    taken = add_usage(state, resource, UsageBatch([container], [amount], [time_ns]), now_ns)
    if taken.from_the_future:
        return FROM_THE_FUTURE
    return None if taken.accepted else DISCARDED


def record_oom(state: ClusterState, oom: OOM, now_ns: int, capacity: Capacity | None = None) -> str | None:
    """Add an out-of-memory kill, bounded by the node's capacity; return why it was refused, if it was."""
    container = ContainerId(PodId(oom.namespace, oom.pod), oom.container)
    tracked = state.find_container(container)
    if isinstance(tracked, str):
        return tracked if container.pod not in state.pods else f"KeyError: {oom.container}"
    if state.compat.refuses_impossible_samples and oom.time_ns > now_ns + MOST_AHEAD_NS:
        return FROM_THE_FUTURE
    _reattach(state, np.array([tracked.history.row]), now_ns)
    most = capacity.memory_bytes if capacity and state.compat.refuses_impossible_samples else None
    refusal = tracked.history.record_oom(oom.time_ns, oom.memory_bytes, most)
    return refusal and f"error while recording OOM for {container}, Reason: {refusal}"
