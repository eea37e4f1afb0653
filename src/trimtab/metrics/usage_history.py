"""Reads the past usage of containers from Prometheus, per namespace.

CPU is the rate over each step, memory its maximum within each step. The model keeps peaks, and a single value per hour
would miss most of them. Labels are those of the step, not the current ones, so that the usage of a former leader counts
for the leader's role (edge case 5.3-4). A step in which a pod's labels changed is left out, because its usage cannot be
assigned to a role.
"""

import asyncio
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from trimtab.metrics.prometheus import PrometheusClient, PrometheusError
from trimtab.metrics.range_queries import Range, RangeSeries, read_history
from trimtab.model import times
from trimtab.model.usage_history import ContainerName, Labelled, UsageHistory

_SELECTOR = re.compile(r"\s*(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)?\s*(?:\{(?P<matchers>[^{}]*)\})?\s*\Z")
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_UNSAFE = re.compile(r"[^a-zA-Z0-9_]")


class SlowHistoryError(PrometheusError):
    """Prometheus timed out, and a retry would take as long again."""


@dataclass(frozen=True)
class SeriesNames:
    """The names of metrics and labels in this Prometheus. The defaults are upstream's."""

    cpu: str = "container_cpu_usage_seconds_total"
    """The counter of CPU seconds per container."""
    memory: str = "container_memory_working_set_bytes"
    """The gauge of bytes per container."""
    job: str = "kubernetes-cadvisor"
    """The scrape job of container usage; empty means any."""
    pod_labels: str = 'up{job="kubernetes-pods"}'
    """The series that carry the pods' labels, as a name with matchers."""
    pod_label_prefix: str = "pod_label_"
    pod_namespace: str = "kubernetes_namespace"
    pod_name: str = "kubernetes_pod_name"
    container_namespace: str = "namespace"
    container_pod: str = "pod_name"
    container_name: str = "name"

    def __post_init__(self) -> None:
        if not _SELECTOR.match(self.pod_labels) or not self.pod_labels.strip():
            raise ValueError(
                f'{self.pod_labels!r} is no series of Prometheus with matchers; write it as name{{job="x"}}'
            )
        for metric in (self.cpu, self.memory):
            if not _METRIC.match(metric):
                raise ValueError(f"{metric!r} is not the name of a metric in Prometheus")
        named = (self.pod_namespace, self.pod_name)
        for label in (*named, self.container_namespace, self.container_pod, self.container_name):
            if not _LABEL.match(label):
                raise ValueError(f"{label!r} is not the name of a label in Prometheus")

    def usage(self, metric: str, namespace: str) -> str:
        """Return the selector of a container metric in one namespace."""
        job = f"job={_quoted(self.job)}, " if self.job else ""
        return (
            f'{metric}{{{job}{self.container_namespace}={_quoted(namespace)}, {self.container_pod}!="", '
            f'{self.container_name}!="", {self.container_name}!="POD"}}'
        )

    def labels(self, namespace: str) -> str:
        """Return the selector of the series that carry the labels of one namespace's pods."""
        match = _SELECTOR.match(self.pod_labels)
        assert match is not None, "checked when the names were made"
        matchers = (match["matchers"] or "").strip().rstrip(",")
        own = f"{self.pod_namespace}={_quoted(namespace)}"
        return f"{match['name'] or ''}{{{f'{matchers}, ' if matchers else ''}{own}}}"


@dataclass(frozen=True)
class Span:
    """The length and the resolution of the history."""

    length: timedelta = timedelta(days=8)
    resolution: timedelta = timedelta(hours=1)

    def until(self, now: datetime) -> Range:
        """Return the range, aligned to the resolution so that repeated queries return the same."""
        step = self.resolution.total_seconds()
        last = math.floor(now.timestamp() / step)
        first = last - max(math.floor(self.length.total_seconds() / step), 1) + 1
        return Range(
            datetime.fromtimestamp(first * step, UTC), datetime.fromtimestamp(last * step, UTC), step
        )


@dataclass(frozen=True)
class UsageHistoryReader:
    """A reader of past usage."""

    client: PrometheusClient
    names: SeriesNames = field(default_factory=SeriesNames)
    span: Span = field(default_factory=Span)
    seconds: float = 300.0
    """How long a query may take, including its retries in smaller pieces."""

    async def read(self, namespace: str, now: datetime, known_keys: Iterable[str] = ()) -> UsageHistory:
        """Return the past usage of a namespace. `known_keys` are label keys in Kubernetes' spelling.

        Prometheus spells `app.kubernetes.io/name` as `app_kubernetes_io_name`.
        """
        wanted, names = self.span.until(now), self.names
        by = f"by ({names.container_pod}, {names.container_name})"
        window = f"[{wanted.step:.0f}s]"
        cpu = names.usage(names.cpu, namespace)
        memory = names.usage(names.memory, namespace)
        begin, step_ns = times.to_ns(wanted.start), round(wanted.step * times.SECOND_NS)
        return UsageHistory(
            namespace,
            tuple(begin + place * step_ns for place in range(wanted.steps)),
            cpu=self._series(await self._ask(f"sum {by} (rate({cpu}{window}))", wanted), wanted),
            memory=self._series(
                await self._ask(f"max {by} (max_over_time({memory}{window}))", wanted), wanted
            ),
            labels=self._labels(
                await self._ask(f"max_over_time({names.labels(namespace)}{window})", wanted),
                wanted,
                known_keys,
            ),
        )

    async def _ask(self, query: str, wanted: Range) -> list[RangeSeries]:
        try:
            async with asyncio.timeout(self.seconds):
                return await read_history(self.client, query, wanted)
        except TimeoutError:
            raise SlowHistoryError(f"no answer within {self.seconds:g} s to {query}") from None

    def _series(self, ranges: list[RangeSeries], wanted: Range) -> dict[ContainerName, tuple[float, ...]]:
        series = {}
        for usage in ranges:
            pod = usage.labels.get(self.names.container_pod, "")
            values = [math.nan] * wanted.steps
            for at, value in zip(usage.at, usage.values, strict=True):
                values[_place(at, wanted)] = value
            series[ContainerName(pod, usage.labels.get(self.names.container_name, ""))] = tuple(values)
        return series

    def _labels(
        self, ranges: list[RangeSeries], wanted: Range, known_keys: Iterable[str]
    ) -> dict[str, tuple[Labelled, ...]]:
        spelling = {_UNSAFE.sub("_", key): key for key in sorted(known_keys)}
        seen: dict[str, dict[int, Mapping[str, str] | None]] = {}
        for series in ranges:
            pod = seen.setdefault(series.labels.get(self.names.pod_name, ""), {})
            labels = self._pod_labels(series.labels, spelling)
            for place in (_place(at, wanted) for at in series.at):
                pod[place] = labels if pod.get(place, labels) == labels else None
        return {pod: _changes(places) for pod, places in seen.items()}

    def _pod_labels(self, labels: Mapping[str, str], spelling: Mapping[str, str]) -> dict[str, str]:
        prefix = self.names.pod_label_prefix
        bare = {name.removeprefix(prefix): value for name, value in labels.items() if name.startswith(prefix)}
        return {spelling.get(name, name): value for name, value in sorted(bare.items())}


def _changes(by_place: Mapping[int, Mapping[str, str] | None]) -> tuple[Labelled, ...]:
    periods: list[Labelled] = []
    for place in sorted(by_place):
        if not periods or periods[-1].labels != by_place[place]:
            periods.append(Labelled(place, by_place[place]))
    return tuple(periods)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _place(at: float, wanted: Range) -> int:
    return round((at - wanted.start.timestamp()) / wanted.step)
