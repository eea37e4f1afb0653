"""Usage samples: one PodMetrics list for all namespaces or one for each, turned into batches for the model."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

import numpy as np

from trimtab.decide.vertical.cluster_state.cluster import ClusterState, PodId
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.input.usage import Capacity, IntakeReport, add_rows
from trimtab.metrics.queries import MetricsError, PodUsage
from trimtab.metrics.reader import MetricsReader
from trimtab.model import times
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.metrics_api import PodMetrics, PodMetricsList
from trimtab.model.quantity import QuantityError, milli_value_of
from trimtab.operator.horizontal.inputs.pod_usage import ALL_NAMESPACES, ListAllPolicy

log = logging.getLogger(__name__)
MOST_INT64 = 2**63 - 1


@dataclass
class _Rows:
    """Samples of one resource, being collected: the row of each container's state, and what goes with it."""

    rows: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)
    times_ns: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)

    def add(self, row: int, amount: int, time_ns: int, most: int) -> None:
        self.rows.append(row)
        # Beyond 64 bits nothing is a measurement; clamped, it is refused like any other absurd one.
        self.amounts.append(amount if 0 <= amount <= MOST_INT64 else max(min(amount, MOST_INT64), -1))
        self.times_ns.append(time_ns)
        self.most.append(most)

    def add_to(self, state: ClusterState, resource: str, now_ns: int) -> IntakeReport:
        rows, amounts, moments, most = (
            np.array(values, dtype=np.int64) for values in (self.rows, self.amounts, self.times_ns, self.most)
        )
        return add_rows(state, resource, UsageRows(rows, amounts, moments), most, now_ns)


class Bounds:
    """The most that a pod's containers can use: what its node has, or the largest node if that is not known."""

    def __init__(self, by_node: Mapping[str, Capacity], node_of: Callable[[PodId], str]) -> None:
        self._by_node = by_node
        self._node_of = node_of
        self._largest = Capacity(
            max((one.millicores for one in by_node.values()), default=MOST_INT64),
            max((one.memory_bytes for one in by_node.values()), default=MOST_INT64),
        )

    def of(self, pod: PodId) -> Capacity:
        """Return the bound for one pod."""
        return self._by_node.get(self._node_of(pod), self._largest)


class UsageFeed:
    """Reads usage: by one list for all namespaces where that is allowed and pays, else by one for each."""

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
        """Per namespace whose usage could not be read last time: why."""

    async def read(self, namespaces: Iterable[str]) -> list[PodMetricsList]:
        """Read the usage of some namespaces; one that cannot be read is left out and named in `failures`."""
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


def take_usage(
    state: ClusterState,
    answers: Iterable[PodMetricsList],
    bounds: Bounds,
    now: datetime,
    *,
    waiting: frozenset[str] = frozenset(),
) -> dict[str, IntakeReport]:
    """Add the samples to the model, except those of namespaces that wait; return what became of them, per resource."""
    cpu, memory = _Rows(), _Rows()
    for answer in answers:
        for item in answer.items:
            if item.metadata.namespace not in waiting:
                _collect(state, item, bounds, cpu, memory)
    now_ns = times.to_ns(now)
    return {CPU: cpu.add_to(state, CPU, now_ns), MEMORY: memory.add_to(state, MEMORY, now_ns)}


def _collect(state: ClusterState, item: PodMetrics, bounds: Bounds, cpu: _Rows, memory: _Rows) -> None:
    known = state.pods.get(PodId(item.metadata.namespace, item.metadata.name))
    if known is None or item.timestamp is None:
        return
    try:
        time_ns = _moment_ns(item.timestamp)
    except ValueError as error:
        log.warning("usage of pod %s has no date: %s", known.id, error)
        return
    most = bounds.of(known.id)
    for container in item.containers:
        tracked = known.containers.get(container.name)
        if tracked is None:
            continue  # a container that the pod's spec does not name, or not yet
        row, used = tracked.history.row, container.usage
        try:
            if CPU in used:
                cpu.add(row, milli_value_of(used[CPU]), time_ns, most.millicores)
            if MEMORY in used:
                memory.add(row, -(-milli_value_of(used[MEMORY]) // 1000), time_ns, most.memory_bytes)
        except QuantityError as error:
            log.warning(
                "usage of container %s of pod %s is not a quantity: %s", container.name, known.id, error
            )


@lru_cache(maxsize=256)
def _moment_ns(text: str) -> int:
    """Read a date; thousands of pods are measured at the same few moments."""
    return times.parse_ns(text)
