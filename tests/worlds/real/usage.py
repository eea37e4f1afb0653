"""What the pods of a workload use, and how its metrics are served."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from tests.worlds.real.hpas import HpaWorld

Value = float | dict[str, float] | None
"""Of a metric: one number, or one for each pod."""


@dataclass
class Pod:
    """A pod that is played."""

    name: str
    ordinal: int
    revision: int
    runs_at: float
    ready_at: float
    state: str = "pending"
    started: float | None = None
    ready_since: float | None = None
    down_since: float | None = None


@dataclass(frozen=True)
class Sample:
    """A value of a metric."""

    published: float
    measured: float
    value: Value


@dataclass(frozen=True)
class Outage:
    """A time in which a metric is not served as it is."""

    until: float
    how: str
    before: Sample | None


class Usage:
    """The metrics of one side of a world."""

    def __init__(self, world: HpaWorld) -> None:
        self._world = world
        self._outages: dict[int, Outage] = {}
        self._samples: list[list[Sample]] = [[] for _ in world.metrics]
        self._measured_at = 0.0

    def fail(self, number: int, how: str, now: float, seconds: float) -> None:
        """Let a metric be away, broken, frozen or old for a while, and all that are the same usage."""
        before = self._current(number, now)
        before = _old(before) if before is not None and how == "old" else before
        for each in self.sharing(number):
            self._outages[each] = Outage(now + seconds, how, before)

    def sharing(self, number: int) -> list[int]:
        """Return the metrics that are the same usage of the same resource as this one."""
        if not self._world.metrics[number].resource:
            return [number]
        return [other for other, metric in enumerate(self._world.metrics) if metric.resource]

    def measure(self, now: float, pods: Collection[Pod]) -> None:
        """Take the samples that are due."""
        for number, metric in enumerate(self._world.metrics):
            samples = self._samples[number]
            scrapes = [
                math.floor((at + self._world.phase) / metric.resolution) for at in (self._measured_at, now)
            ]
            if not samples or scrapes[0] != scrapes[1]:
                samples.append(Sample(now + metric.delay, now, self._usage(number, now, pods)))
                del samples[:-30]
        self._measured_at = now

    def _usage(self, number: int, now: float, pods: Collection[Pod]) -> Value:
        metric, load = self._world.metrics[number], self._world.noisy_demand(self.sharing(number)[0], now)
        ready = sum(pod.state == "ready" for pod in pods)
        if metric.kind in ("Object", "External"):
            return load / max(ready, 1) if metric.target_type == "Value" else load
        share = load / ready if ready else 0.0
        share = min(share, metric.cap * metric.target) if metric.cap else share
        usage = {}
        for pod in pods:
            if pod.state == "ready":
                usage[pod.name] = share * (1 + 0.06 * math.sin(pod.ordinal * 2.4))
            elif pod.state in ("running", "down"):
                if metric.resource == "cpu":
                    usage[pod.name] = (
                        (metric.cap or 2.5) * metric.target if self._world.burns_at_start else 2.0
                    )
                elif metric.resource == "memory":
                    usage[pod.name] = 0.3 * metric.target
                elif self._world.idle_pods_report:
                    usage[pod.name] = 0.0
        return usage

    def _current(self, number: int, now: float) -> Sample | None:
        samples = self._samples[number]
        published = [sample for sample in samples if sample.published <= now] or samples[:1]
        return published[-1] if published else None

    def serve(self, number: int, now: float) -> tuple[str, float, Value]:
        """Return how a metric is served now, of which moment, and its value."""
        outage = self._outages.get(number)
        sample = self._current(number, now)
        if outage is not None and now < outage.until:
            if outage.how in ("missing", "error", "empty"):
                return outage.how, now, None
            sample = outage.before
        if sample is None:
            return "missing", now, None
        return "ok", sample.measured, sample.value


def _old(sample: Sample) -> Sample:
    """Return a sample of a source that hangs for minutes, since a time of less load."""
    value = sample.value or 0.0
    low = {name: amount * 0.2 for name, amount in value.items()} if isinstance(value, dict) else value * 0.2
    return Sample(sample.published, sample.measured - 400, low)
