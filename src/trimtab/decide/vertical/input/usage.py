"""Adds usage samples and OOM kills to the cluster state, and rejects impossible ones.

A single absurd sample would stay in the histogram and in its checkpoint for days (upstream recommends 1,174 cores after
one). See docs/decisions/recommend-only-from-valid-and-sufficient-samples.md.
"""

from dataclasses import dataclass
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

FROM_THE_FUTURE: Final = "more than a minute ahead of the clock"


@dataclass(frozen=True)
class Capacity:
    """The capacity of a node, the limit of a container's usage."""

    millicores: int
    memory_bytes: int


LARGEST_NODE: Final = Capacity(millicores=8192 * 1000, memory_bytes=64 * 2**40)
"""What no node exceeds, for containers whose node is unknown.

Linux runs on at most 8192 CPUs and, with 4 levels of page tables, on at most 64 TiB of memory. The largest machines of
clouds have 1,920 CPUs and 32 TiB.
"""


@dataclass(frozen=True)
class IntakeReport:
    """The result of adding a batch of samples."""

    accepted: int = 0
    discarded: int = 0
    """Negative, or not newer than the container's last sample."""
    above_capacity: int = 0
    from_the_future: int = 0
    usage: UsageRows | None = None
    """The accepted samples."""


def add_rows(
    state: ClusterState, resource: str, usage: UsageRows, capacities: Ints | None, now_ns: int
) -> IntakeReport:
    """Add samples by container row. `capacities` are those of the containers' nodes."""
    if capacities is None:
        largest = LARGEST_NODE.millicores if resource == CPU else LARGEST_NODE.memory_bytes
        capacities = np.full(len(usage.containers), largest, dtype=np.int64)
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
    state: ClusterState, usage: UsageRows, capacities: Ints, now_ns: int
) -> tuple[np.typing.NDArray[np.bool_], np.typing.NDArray[np.bool_]]:
    none = np.zeros(len(usage.containers), dtype=np.bool_)
    if not state.rules.ours:
        return none, none
    future = usage.times > to_int64(now_ns + MAX_CLOCK_SKEW_NS)
    return future, ~future & (usage.amounts > capacities)


def _reattach(state: ClusterState, rows: Ints, now_ns: int) -> None:
    for row in rows[state.containers.aggregate[rows] == DETACHED].tolist():
        state.reattach(row, now_ns)


def record_oom(state: ClusterState, oom: OOM, now_ns: int, capacity: Capacity | None = None) -> str | None:
    """Add an OOM kill, limited by the node's capacity. Return an error if it is rejected."""
    container = ContainerId(PodId(oom.namespace, oom.pod), oom.container)
    tracked = state.find_container(container)
    if isinstance(tracked, str):
        return tracked if container.pod not in state.pods else f"KeyError: {oom.container}"
    if state.rules.ours and oom.time_ns > now_ns + MAX_CLOCK_SKEW_NS:
        return FROM_THE_FUTURE
    _reattach(state, np.array([tracked.history.row]), now_ns)
    limit = capacity.memory_bytes if capacity and state.rules.ours else None
    error = tracked.history.record_oom(oom.time_ns, oom.memory_bytes, limit)
    return error and f"error while recording OOM for {container}, Reason: {error}"
