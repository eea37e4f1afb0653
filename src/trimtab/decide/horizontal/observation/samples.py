"""Answers of the metrics APIs, read into numbers.

The readers here are pure: whoever fetched the answer (the operator, a replay, a test) hands it over decoded and
gets a `Reading`. An answer that cannot be used is a `Failed` reading whose text tells why; it is a value, because
a metric that cannot be read is an expected outcome. Values are in thousandths.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import Literal, cast

import msgspec

from trimtab.decide.horizontal.arithmetic import INT64_MAX, NEVER, fold64, saturated, seconds, seconds_of
from trimtab.model.json.wire import Wire
from trimtab.model.metrics_api import (
    ContainerMetrics,
    ExternalMetricValueList,
    MetricValue,
    MetricValueList,
    PodMetrics,
    PodMetricsList,
)
from trimtab.model.quantity import QuantityError, milli_value_of
from trimtab.model.times import parse_duration

CUSTOM_METRIC_WINDOW = 60.0
"""The window of a custom metric that does not say its own."""


class Sample(Wire, kw_only=False):
    """One value, the moment it was taken and the window it covers."""

    value: int
    timestamp: float = NEVER
    window: float = 0.0


class PodSamples(Wire, tag="pods"):
    """A value for each pod, by name."""

    samples: dict[str, Sample] = msgspec.field(default_factory=dict)
    timestamp: float = NEVER


class Series(Wire, tag="series"):
    """The one value of an object, or the several of an external metric."""

    samples: tuple[Sample, ...] = ()


class FetchFailure(Wire, tag="failed"):
    """No usable answer, and why."""

    message: str
    is_forbidden: bool = False
    """Whether whoever asked may not read the metric."""


MetricSamples = PodSamples | Series | FetchFailure


def unfetched(api: Literal["resource", "custom", "external"], error: str) -> FetchFailure:
    """Return the reading of a metrics API that answered with an error, or not at all."""
    return FetchFailure(message=f"unable to fetch metrics from {api} metrics API: {error}")


def failure_of(reading: MetricSamples) -> str:
    """Say why a reading is not the one that was wanted."""
    return reading.message if isinstance(reading, FetchFailure) else "the answer is of another kind"


def read_resource(
    answer: PodMetricsList, resource: str, container: str = "", *, wraps: bool = False
) -> PodSamples | FetchFailure:
    """Read the usage of a resource by each pod, or by one container of each pod, from metrics.k8s.io.

    A pod whose usage is no number has no sample. `wraps` lets the sum over a pod's containers wrap around, as
    upstream's does.
    """
    return read_usage(answer.items, resource, container, wraps=wraps)


def read_usage(
    items: Sequence[PodMetrics], resource: str, container: str, *, wraps: bool
) -> PodSamples | FetchFailure:
    """Read the usage of a resource by these pods; see `read_resource`."""
    if not items:
        return FetchFailure(message="no metrics returned from resource metrics API")
    samples: dict[str, Sample] = {}
    unusable = ""
    for item in items:
        try:
            used = _used(item.containers, resource, container, wraps=wraps)
            if used is not None:
                samples[item.metadata.name] = Sample(used, seconds_of(item.timestamp), _window(item.window))
        except ValueError as error:
            # The list is shared by all workloads of the namespace: one odd pod must not cost them theirs.
            unusable = unusable or f"for pod {item.metadata.name}: {error}"
    if unusable and not samples:
        return FetchFailure(message=f"unusable answer of resource metrics API {unusable}")
    return PodSamples(samples=samples, timestamp=_date_of(items[0]))


def each_usage(items: Sequence[PodMetrics], resource: str, container: str) -> list[int] | None:
    """Return what each of these pods uses; None if that cannot be told of every one of them."""
    if not container:
        try:
            # Most pods have one container: a third of the time.
            return [_milli(only.usage[resource]) for item in items for (only,) in (item.containers,)]
        except (KeyError, ValueError):
            pass  # more of them, or one that does not say
    try:
        used = [_used(item.containers, resource, container, wraps=False) for item in items]
    except ValueError:
        return None
    return None if None in used else cast("list[int]", used)


def span_of(items: Iterable[PodMetrics]) -> tuple[float, float]:
    """Return the first and the last moment at which any of these pods was measured; of all time if one cannot be read."""
    texts = {item.timestamp for item in items}
    texts.discard(None)  # said of no time at all, which is believed
    try:
        moments = [seconds_of(text) for text in texts]
    except ValueError:
        return -inf, inf
    return min(moments, default=inf), max(moments, default=-inf)


def _date_of(item: PodMetrics) -> float:
    try:
        return seconds_of(item.timestamp)
    except ValueError:
        return NEVER


def _used(
    containers: tuple[ContainerMetrics, ...], resource: str, container: str, *, wraps: bool
) -> int | None:
    """Sum up a pod's containers, or read one; a pod in which any of these lacks the resource has no sample."""
    if container:
        return _container_usage(containers, resource, container)
    if len(containers) == 1:
        text = containers[0].usage.get(resource)
        return None if text is None else _milli(text)
    total = 0
    for one in containers:
        text = one.usage.get(resource)
        if text is None:
            return None
        total += _milli(text)
    if not containers:
        return None
    return fold64(total, saturate=False) if wraps else saturated(total)


def _container_usage(containers: tuple[ContainerMetrics, ...], resource: str, name: str) -> int | None:
    for container in containers:
        if container.name == name:
            text = container.usage.get(resource)
            return None if text is None else _milli(text)
    return None


MOST_MILLI = 10**33
"""Beyond 1e30 a value is a fault of its source (1e400 is how some print infinity), not a load (fault F34)."""


class Asked(Wire):
    """What a metric was asked for, so that an answer about something else is noticed and refused."""

    metric: str
    namespace: str = ""
    object: str = ""
    """Name of the described object; empty for the pods of a workload."""

    def refusal(self, metric: str, namespace: str = "", described: str = "") -> str:
        """Say what an answer is about if that is not what was asked; an answer that leaves a name out is believed."""
        if metric and metric != self.metric:
            return f"the answer is about metric {metric}, not {self.metric}"
        if namespace and self.namespace and namespace != self.namespace:
            return f"the answer is about namespace {namespace}, not {self.namespace}"
        if described and self.object and described != self.object:
            return f"the answer is about {described}, not {self.object}"
        return ""


def read_pods_metric(answer: MetricValueList, asked: Asked | None = None) -> PodSamples | FetchFailure:
    """Read a custom metric of each pod from custom.metrics.k8s.io; of a pod named twice the last value counts."""
    if not answer.items:
        return FetchFailure(message="no metrics returned from custom metrics API")
    samples: dict[str, Sample] = {}
    for item in answer.items:
        name = item.described_object.name
        refusal = asked and asked.refusal(_metric_name(item), item.described_object.namespace)
        if refusal:
            return FetchFailure(message=f"unusable answer of custom metrics API for pod {name}: {refusal}")
        try:
            samples[name] = _custom_sample(item)
        except QuantityError as error:
            return FetchFailure(message=f"unusable answer of custom metrics API for pod {name}: {error}")
    return PodSamples(samples=samples, timestamp=seconds(answer.items[0].timestamp))


def read_object_metric(answer: MetricValueList, asked: Asked | None = None) -> Series | FetchFailure:
    """Read the metric of one object from custom.metrics.k8s.io, which must answer with exactly one value."""
    if len(answer.items) != 1:
        return FetchFailure(
            message="unable to fetch metrics from custom metrics API: the custom metrics API server returned "
            f"{len(answer.items)} results when we asked for exactly one"
        )
    item = answer.items[0]
    described = item.described_object
    refusal = asked and asked.refusal(_metric_name(item), described.namespace, described.name)
    if refusal:
        return FetchFailure(message=f"unusable answer of custom metrics API: {refusal}")
    try:
        return Series(samples=(_custom_sample(item),))
    except QuantityError as error:
        return FetchFailure(message=f"unusable answer of custom metrics API: {error}")


def _metric_name(item: MetricValue) -> str:
    """Return the name of the metric, where v1beta2 or v1beta1 has it."""
    return item.metric.name if item.metric else item.metric_name


def _custom_sample(item: MetricValue) -> Sample:
    told = item.window if item.window_seconds is None else item.window_seconds
    window = CUSTOM_METRIC_WINDOW if told is None else float(told)
    return Sample(_milli(item.value), seconds(item.timestamp), window)


def read_external_metric(
    answer: ExternalMetricValueList, asked: Asked | None = None
) -> Series | FetchFailure:
    """Read every series of an external metric from external.metrics.k8s.io."""
    if not answer.items:
        return FetchFailure(message="no metrics returned from external metrics API")
    samples: list[Sample] = []
    for item in answer.items:
        refusal = asked and asked.refusal(item.metric_name)
        if refusal:
            return FetchFailure(message=f"unusable answer of external metrics API: {refusal}")
        try:
            value = _milli(item.value)
        except QuantityError as error:
            return FetchFailure(message=f"unusable answer of external metrics API: {error}")
        samples.append(Sample(value, seconds(item.timestamp), float(item.window_seconds or 0)))
    return Series(samples=tuple(samples))


@lru_cache(maxsize=16384)
def _milli(text: str) -> int:
    value = milli_value_of(text)
    if -INT64_MAX <= value <= INT64_MAX:
        return value
    if abs(value) > MOST_MILLI:
        raise QuantityError(f"{text!r} measures nothing: more than 1e30")
    return saturated(value)


@lru_cache(maxsize=256)
def _window(text: str) -> float:
    return parse_duration(text).total_seconds() if text else 0.0
