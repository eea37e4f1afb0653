"""Turns decoded answers of the metrics APIs into samples.

An answer that cannot be used becomes a `FetchFailure` with the reason. It is a value, because a metric that cannot be read is an
expected outcome. Values are in thousandths.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, cast

import msgspec

from trimtab.decide.horizontal.arithmetic import INT64_MAX, NEVER, int64_of, seconds, seconds_of
from trimtab.model.json.wire import Wire
from trimtab.model.metrics_api import (
    ContainerMetrics,
    ExternalMetricValueList,
    MetricValue,
    MetricValueList,
    PodMetrics,
)
from trimtab.model.quantity import QuantityError, milli_value_of
from trimtab.model.times import parse_duration

CUSTOM_METRIC_WINDOW = 60.0
"""The window of a custom metric that names none, in seconds."""


class Sample(Wire, kw_only=False):
    """One value, the time it was taken and the window it covers."""

    value: int
    timestamp: float = NEVER
    window: float = 0.0


class Move(Wire, kw_only=False, array_like=True):
    """When samples of one date came, by the clock of the decision. The dates are those of another clock."""

    timestamp: float
    at: float
    """When the first list with this date came."""
    lacked_at: float | None = None
    """When the last list before it was asked for. None if there was none: then only the date itself says how old it is."""

    @property
    def since(self) -> float:
        """Return since when the samples are as they are."""
        return min(self.timestamp, self.at) if self.lacked_at is None else self.at


class PodSamples(Wire, tag="pods"):
    """The sample of each pod, by name."""

    samples: dict[str, Sample] = msgspec.field(default_factory=dict)
    timestamp: float = NEVER
    moves: tuple[Move, ...] = ()
    """When the dates of these samples were first seen. A date without a move is one of our own clock."""


class Series(Wire, tag="series"):
    """The single value of an object, or all values of an external metric."""

    samples: tuple[Sample, ...] = ()
    moves: tuple[Move, ...] = ()


class FetchFailure(Wire, tag="failed"):
    """Why there is no usable answer."""

    message: str
    is_forbidden: bool = False
    """Whether the caller has no permission to read the metric."""
    is_empty: bool = False
    """Whether the answer contains no pod."""


MetricSamples = PodSamples | Series | FetchFailure


DELAY_SECONDS = 15.0
"""How long a kubelet may keep a sample before a list can have it."""


def earliest_beginning(samples: Iterable[Sample], moves: tuple[Move, ...], now: float) -> float:
    """Return when the window of the earliest of these samples may have begun."""
    lacked_at = {move.timestamp: move.lacked_at for move in moves}

    def began(timestamp: float, window: float) -> float:
        if timestamp == NEVER:  # as new as its list
            return now - window
        if timestamp not in lacked_at:
            return timestamp - window
        before = lacked_at[timestamp]
        return timestamp - window if before is None else before - window - DELAY_SECONDS

    return min((began(*dated) for dated in {(each.timestamp, each.window) for each in samples}), default=now)


def unfetched(api: Literal["resource", "custom", "external"], error: str) -> FetchFailure:
    """Return the failure of a metrics API that answered with an error, or not at all."""
    return FetchFailure(message=f"unable to fetch metrics from {api} metrics API: {error}")


def failure_of(samples: MetricSamples) -> str:
    """Return why samples are not of the wanted kind."""
    return samples.message if isinstance(samples, FetchFailure) else "the answer is of another kind"


def read_usage(
    items: Sequence[PodMetrics],
    resource: str,
    container: str = "",
    *,
    names: Sequence[str] = (),
) -> PodSamples | FetchFailure:
    """Read the usage of a resource by each pod, or by one container of each, from metrics.k8s.io.

    A pod whose usage is not a number has no sample. `names` are the names of the items, if the caller has them.
    """
    if not items:
        return FetchFailure(message="no metrics returned from resource metrics API", is_empty=True)
    values = each_usage(items, resource, container)
    if values is not None:
        try:
            return PodSamples(
                samples={
                    name: Sample(used, seconds_of(item.timestamp), _window(item.window))
                    for name, item, used in zip(
                        names or [item.metadata.name for item in items], items, values, strict=True
                    )
                },
                timestamp=_date_of(items[0]),
            )
        except ValueError:
            pass  # the date or the window of a pod cannot be read
    return _read_usage_of_each(items, resource, container)


def _read_usage_of_each(
    items: Sequence[PodMetrics], resource: str, container: str
) -> PodSamples | FetchFailure:
    """Read what can be read, pod by pod, which takes twice the time."""
    samples: dict[str, Sample] = {}
    unusable = ""
    for item in items:
        try:
            used = _used(item.containers, resource, container)
            if used is not None:
                samples[item.metadata.name] = Sample(used, seconds_of(item.timestamp), _window(item.window))
        except ValueError as error:
            # All workloads of the namespace share the list; one odd pod must not cost them their samples.
            unusable = unusable or f"for pod {item.metadata.name}: {error}"
    if unusable and not samples:
        return FetchFailure(message=f"unusable answer of resource metrics API {unusable}")
    return PodSamples(samples=samples, timestamp=_date_of(items[0]))


def each_usage(items: Sequence[PodMetrics], resource: str, container: str) -> list[int] | None:
    """Return the usage of each pod, or None if any pod has no usable value."""
    if not container:
        try:
            # Most pods have one container, which takes a third of the time.
            return [_milli(only.usage[resource]) for item in items for (only,) in (item.containers,)]
        except (KeyError, ValueError):
            pass  # a pod has several containers, or no value
    try:
        used = [_used(item.containers, resource, container) for item in items]
    except ValueError:
        return None
    return None if None in used else cast("list[int]", used)


def _date_of(item: PodMetrics) -> float:
    try:
        return seconds_of(item.timestamp)
    except ValueError:
        return NEVER


def _used(containers: tuple[ContainerMetrics, ...], resource: str, container: str) -> int | None:
    """Return the usage of a pod or container, or None if a container lacks the resource."""
    if container:
        return _container_usage(containers, resource, container)
    if len(containers) == 1:
        text = containers[0].usage.get(resource)
        return None if text is None else _milli(text)
    total = 0
    for measured in containers:
        text = measured.usage.get(resource)
        if text is None:
            return None
        total += _milli(text)
    if not containers:
        return None
    return int64_of(total)


def _container_usage(containers: tuple[ContainerMetrics, ...], resource: str, name: str) -> int | None:
    for container in containers:
        if container.name == name:
            text = container.usage.get(resource)
            return None if text is None else _milli(text)
    return None


MOST_MILLI = 10**33
"""Values beyond 1e30 are faults of their source; some print infinity as 1e400."""


class Asked(Wire):
    """What a metric query asked for, to reject answers about another metric or object."""

    metric: str
    namespace: str = ""
    object: str = ""
    """Name of the described object; empty for the pods of a workload."""

    def mismatch(self, metric: str, namespace: str = "", described: str = "") -> str:
        """Return how the names in an answer differ from the query."""
        if metric and metric != self.metric:
            return f"the answer is about metric {metric}, not {self.metric}"
        if namespace and self.namespace and namespace != self.namespace:
            return f"the answer is about namespace {namespace}, not {self.namespace}"
        if described and self.object and described != self.object:
            return f"the answer is about {described}, not {self.object}"
        return ""


def read_pods_metric(answer: MetricValueList, asked: Asked | None = None) -> PodSamples | FetchFailure:
    """Read a custom metric of each pod from custom.metrics.k8s.io."""
    if not answer.items:
        return FetchFailure(message="no metrics returned from custom metrics API")
    samples: dict[str, Sample] = {}
    for item in answer.items:
        name = item.described_object.name
        mismatch = asked and asked.mismatch(_metric_name(item), item.described_object.namespace)
        if mismatch:
            return FetchFailure(message=f"unusable answer of custom metrics API for pod {name}: {mismatch}")
        try:
            samples[name] = _custom_sample(item)
        except QuantityError as error:
            return FetchFailure(message=f"unusable answer of custom metrics API for pod {name}: {error}")
    return PodSamples(samples=samples, timestamp=seconds(answer.items[0].timestamp))


def read_object_metric(answer: MetricValueList, asked: Asked | None = None) -> Series | FetchFailure:
    """Read the metric of one object from custom.metrics.k8s.io, which must return one value."""
    if len(answer.items) != 1:
        return FetchFailure(
            message="unable to fetch metrics from custom metrics API: the custom metrics API server returned "
            f"{len(answer.items)} results when we asked for exactly one"
        )
    item = answer.items[0]
    described = item.described_object
    mismatch = asked and asked.mismatch(_metric_name(item), described.namespace, described.name)
    if mismatch:
        return FetchFailure(message=f"unusable answer of custom metrics API: {mismatch}")
    try:
        return Series(samples=(_custom_sample(item),))
    except QuantityError as error:
        return FetchFailure(message=f"unusable answer of custom metrics API: {error}")


def _metric_name(item: MetricValue) -> str:
    # v1beta2 and v1beta1 have it in different places.
    return item.metric.name if item.metric else item.metric_name


def _custom_sample(item: MetricValue) -> Sample:
    seconds_given = item.window if item.window_seconds is None else item.window_seconds
    window = CUSTOM_METRIC_WINDOW if seconds_given is None else float(seconds_given)
    return Sample(_milli(item.value), seconds(item.timestamp), window)


def read_external_metric(
    answer: ExternalMetricValueList, asked: Asked | None = None
) -> Series | FetchFailure:
    """Read every series of an external metric from external.metrics.k8s.io."""
    if not answer.items:
        return FetchFailure(message="no metrics returned from external metrics API")
    samples: list[Sample] = []
    for item in answer.items:
        mismatch = asked and asked.mismatch(item.metric_name)
        if mismatch:
            return FetchFailure(message=f"unusable answer of external metrics API: {mismatch}")
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
    return int64_of(value)


@lru_cache(maxsize=256)
def _window(text: str) -> float:
    return parse_duration(text).total_seconds() if text else 0.0
