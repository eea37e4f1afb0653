"""Reads PodMetrics and adds them to a cluster state in batches."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

import numpy as np

from trimtab.decide.vertical.cluster_state.cluster import ClusterState, PodId
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.input.usage import LARGEST_NODE, Capacity, IntakeReport, add_rows
from trimtab.metrics.queries import MetricsError, PodUsage
from trimtab.metrics.reader import MetricsReader
from trimtab.model import times
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.metrics_api import PodMetrics, PodMetricsList
from trimtab.model.quantity import QuantityError, milli_value_of
from trimtab.operator.horizontal.usage import ALL_NAMESPACES, ListAllPolicy

log = logging.getLogger(__name__)
MAX_INT64 = 2**63 - 1


@dataclass
class _Batch:
    """Samples of one resource: per container its row in the state, amount, time and capacity."""

    rows: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)
    times_ns: list[int] = field(default_factory=list)
    capacities: list[int] = field(default_factory=list)

    def add(self, row: int, amount: int, time_ns: int, capacity: int) -> None:
        self.rows.append(row)
        # A clamped amount is still above any capacity, so it is rejected.
        self.amounts.append(amount if 0 <= amount <= MAX_INT64 else max(min(amount, MAX_INT64), -1))
        self.times_ns.append(time_ns)
        self.capacities.append(capacity)

    def add_to(self, state: ClusterState, resource: str, now_ns: int) -> IntakeReport:
        rows, amounts, times_ns, capacities = (
            np.array(values, dtype=np.int64)
            for values in (self.rows, self.amounts, self.times_ns, self.capacities)
        )
        return add_rows(state, resource, UsageRows(rows, amounts, times_ns), capacities, now_ns)


class PodCapacities:
    """The capacity of each pod's node, or of the largest node if the pod's node is unknown."""

    def __init__(self, by_node: Mapping[str, Capacity], node_of: Callable[[PodId], str]) -> None:
        self._by_node = by_node
        self._node_of = node_of
        self._largest = Capacity(
            max((node.millicores for node in by_node.values()), default=LARGEST_NODE.millicores),
            max((node.memory_bytes for node in by_node.values()), default=LARGEST_NODE.memory_bytes),
        )

    def of(self, pod: PodId) -> Capacity:
        """Return how much a container of the pod can use at most."""
        return self.of_node(pod) or self._largest

    def of_node(self, pod: PodId) -> Capacity | None:
        """Return the capacity of the pod's node, or None if that is unknown."""
        return self._by_node.get(self._node_of(pod))


class UsageFeed:
    """Reads PodMetrics: one list for all namespaces where that is allowed and cheaper, else one per namespace."""

    def __init__(
        self,
        reader: MetricsReader,
        whole: ListAllPolicy,
        count: Callable[[bool], None] = lambda _is_error: None,
    ) -> None:
        self._reader = reader
        self._whole = whole
        self._count = count
        self.failures: dict[str, str] = {}
        """Why the last read of a namespace failed."""

    async def read(self, namespaces: Iterable[str]) -> list[PodMetricsList]:
        """Read the usage of some namespaces, and note failed ones in `failures`."""
        self.failures = {}
        wanted = sorted(set(namespaces))
        if self._whole.is_cheaper(wanted):
            answer = await self._read_all()
            if answer is not None:
                return [answer]
        answers = await asyncio.gather(*(self._read(namespace) for namespace in wanted))
        return [answer for answer in answers if answer is not None]

    async def _read_all(self) -> PodMetricsList | None:
        try:
            answer = await self._reader.pod_usage(ALL_NAMESPACES)
        except (MetricsError, ValueError) as error:
            self._count(True)
            self._whole.note_failure(str(error))
            return None
        self._count(False)
        self._whole.note_success()
        return answer

    async def _read(self, namespace: str) -> PodMetricsList | None:
        try:
            answer = await self._reader.pod_usage(PodUsage(namespace))
        except (MetricsError, ValueError) as error:
            self._count(True)
            self.failures[namespace] = str(error)
            log.warning("no usage of namespace %s: %s", namespace, error)
            return None
        self._count(False)
        return answer


@dataclass
class AddedUsage:
    """What became of the samples of a step."""

    reports: dict[str, IntakeReport]
    """By resource."""
    unreadable: list[str]
    """Why the usage of a pod or container could not be read, for each of them."""


def add_usage(
    state: ClusterState,
    answers: Iterable[PodMetricsList],
    capacities: PodCapacities,
    now: datetime,
    *,
    waiting: frozenset[str] = frozenset(),
) -> AddedUsage:
    """Add samples, except those of waiting namespaces."""
    cpu, memory, unreadable = _Batch(), _Batch(), list[str]()
    for answer in answers:
        for item in answer.items:
            if item.metadata.namespace not in waiting:
                unreadable += _collect(state, item, capacities, cpu, memory)
    now_ns = times.to_ns(now)
    reports = {CPU: cpu.add_to(state, CPU, now_ns), MEMORY: memory.add_to(state, MEMORY, now_ns)}
    return AddedUsage(reports, unreadable)


def _collect(
    state: ClusterState, item: PodMetrics, capacities: PodCapacities, cpu: _Batch, memory: _Batch
) -> Iterable[str]:
    """Add the samples of a pod to the batches, and return what could not be read."""
    known = state.pods.get(PodId(item.metadata.namespace, item.metadata.name))
    if known is None or item.timestamp is None:
        return ()
    try:
        time_ns = _parse_time_ns(item.timestamp)
    except ValueError as error:
        return (f"pod {known.id} has no date: {error}",)
    unreadable = []
    capacity = capacities.of(known.id)
    for container in item.containers:
        tracked = known.containers.get(container.name)
        if tracked is None:
            continue  # not in the pod's spec, or not yet
        row, used = tracked.history.row, container.usage
        try:
            if CPU in used:
                cpu.add(row, milli_value_of(used[CPU]), time_ns, capacity.millicores)
            if MEMORY in used:
                memory.add(row, -(-milli_value_of(used[MEMORY]) // 1000), time_ns, capacity.memory_bytes)
        except QuantityError as error:
            unreadable.append(f"container {container.name} of pod {known.id} is not a quantity: {error}")
    return unreadable


@lru_cache(maxsize=256)
def _parse_time_ns(text: str) -> int:
    # Cached: thousands of pods share a few timestamps.
    return times.parse_ns(text)
