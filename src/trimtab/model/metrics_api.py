"""Responses of the three metrics API groups.

Values stay text here, and so do the timestamps of pods, thousands of which are equal. The reader converts them in bulk.
"""

from datetime import datetime
from typing import Annotated

import msgspec

from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector

Seconds = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A number of seconds in 64 bits, as the API declares it."""


class ContainerMetrics(Wire):
    """Usage of one container."""

    name: str = ""
    usage: dict[str, str] = {}


class MeasuredPod(Wire):
    """The measured pod, without the labels that metrics-server repeats."""

    name: str = ""
    namespace: str = ""


class PodMetrics(Wire):
    """PodMetrics of metrics.k8s.io, v1 or v1beta1: usage of a pod over the window before `timestamp`."""

    metadata: MeasuredPod = MeasuredPod()
    timestamp: str | None = None
    window: str = ""
    containers: tuple[ContainerMetrics, ...] = ()


class PodMetricsList(Wire):
    """A list of PodMetrics."""

    items: tuple[PodMetrics, ...] = ()


class DescribedObject(Wire):
    """The object that a custom metric describes."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    api_version: str = ""


class CustomMetricIdentifier(Wire):
    """The name and the selector of a custom metric in v1beta2."""

    name: str = ""
    selector: LabelSelector | None = None


class MetricValue(Wire):
    """The value of a custom metric, in v1beta1 (`metricName`, `selector`) or v1beta2 (`metric`)."""

    described_object: DescribedObject = DescribedObject()
    metric: CustomMetricIdentifier | None = None
    metric_name: str = ""
    selector: LabelSelector | None = None
    timestamp: datetime | None = None
    window_seconds: Seconds | None = None
    window: Seconds | None = None  # in v1beta1
    value: str = ""  # absent is not 0: the reader decides (F34)


class MetricValueList(Wire):
    """A list of custom metric values."""

    items: tuple[MetricValue, ...] = ()


class ExternalMetricValue(Wire):
    """One series of an external metric."""

    metric_name: str = ""
    metric_labels: dict[str, str] = {}
    timestamp: datetime | None = None
    window_seconds: Seconds | None = msgspec.field(default=None, name="window")
    value: str = ""  # absent is not 0: the reader decides (F34)


class ExternalMetricValueList(Wire):
    """The series of an external metric."""

    items: tuple[ExternalMetricValue, ...] = ()
