"""Forwards queries to another adapter, so that several providers share one API group.

Only one server can be registered for a group. This source puts others behind it, chosen by metric name. The user was
authorized here. The other adapter sees this adapter's own credentials, which are sent to its address only.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from trimtab.adapter.api.health import Health, RuleHealth
from trimtab.adapter.api.requests import (
    CUSTOM_GROUP,
    EXTERNAL_GROUP,
    CustomMetricQuery,
    ExternalMetricQuery,
    MetricQuery,
)
from trimtab.adapter.config import ForwardSettings
from trimtab.adapter.files import ConfigurationError
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample, Offer
from trimtab.clock import Clock
from trimtab.cluster import errors as cluster
from trimtab.cluster.client import Client
from trimtab.cluster.transport import Deadlines, Request
from trimtab.metrics.queries import MetricsError
from trimtab.metrics.versions import CustomMetricsVersion
from trimtab.model.json import wire
from trimtab.model.metrics_api import ExternalMetricValueList, MetricValueList
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.model.status import StatusError

T = TypeVar("T")

MAX_BYTES = 16 * 1024 * 1024
CATALOGUE_SECONDS = 30.0
_VERSION_SECONDS = 15.0


class _ApiResource(wire.Wire):
    name: str = ""
    namespaced: bool = False


class _ApiResources(wire.Wire):
    resources: tuple[_ApiResource, ...] = ()


class ForwardSource:
    """Returns the values of another adapter."""

    def __init__(self, clock: Clock, name: str, client: Client, settings: ForwardSettings) -> None:
        self._clock = clock
        self.name = name
        self._client = client
        self._patterns = [_compile(name, pattern) for pattern in settings.metrics]
        unknown = set(settings.groups) - {"custom", "external"}
        if unknown:
            raise ConfigurationError(
                f"sources: {name}: groups: {min(unknown)!r} is neither custom nor external"
            )
        self._groups = frozenset(settings.groups)
        self._version = CustomMetricsVersion(clock, client, believed_for=_VERSION_SECONDS)
        self._health = RuleHealth(clock, f"source {name}")
        self._catalogue = Catalogue()

    def serves(self, query: MetricQuery) -> bool:
        """Return whether the metric's name is one of those forwarded."""
        group = "external" if isinstance(query, ExternalMetricQuery) else "custom"
        return group in self._groups and self._matches(query.metric)

    def catalogue(self) -> Catalogue:
        """Return what the other adapter offered at the last discovery."""
        return self._catalogue

    def health(self) -> Iterable[Health]:
        """Return whether the other adapter responds."""
        yield self._health.report()

    async def custom(self, query: CustomMetricQuery) -> Sequence[CustomSample]:
        """Return the other adapter's values, after checking that they belong to the query (fault F40)."""
        try:
            version = await self._version.current()
        except MetricsError as error:
            raise self._unread(error) from error
        response = await self._fetch(query, version, MetricValueList)
        samples = []
        for item in response.items:
            named = item.metric.name if item.metric else item.metric_name
            described = item.described_object
            if named != query.metric or not (query.selects_objects or described.name == query.name):
                raise self._failed(f"asked for {query}, got {named} of {described.name}")
            samples.append(
                CustomSample(described.name, *self._value(item.value, item.timestamp), item.window_seconds)
            )
        return samples

    async def external(self, query: ExternalMetricQuery) -> Sequence[ExternalSample]:
        """Return the other adapter's series."""
        response = await self._fetch(query, "v1beta1", ExternalMetricValueList)
        series = []
        for item in response.items:
            if item.metric_name != query.metric:
                raise self._failed(f"asked for {query}, got {item.metric_name}")
            series.append(
                ExternalSample(
                    item.metric_labels, *self._value(item.value, item.timestamp), item.window_seconds
                )
            )
        return series

    async def run(self) -> None:
        """Discover the other adapter's metrics every 30 s until cancelled."""
        while True:
            await self.discover()
            await self._clock.sleep(CATALOGUE_SECONDS)

    async def discover(self) -> None:
        """Discover the other adapter's metrics. After a failure the last ones stay."""
        custom, external = self._catalogue.custom, self._catalogue.external
        try:
            if "custom" in self._groups:
                version = await self._version.current()
                custom = frozenset(
                    Offer(resource, metric, served.namespaced)
                    for served in await self._resources(CUSTOM_GROUP, version)
                    for resource, _, metric in [served.name.partition("/")]
                    if self._matches(metric)
                )
            if "external" in self._groups:
                resources = await self._resources(EXTERNAL_GROUP, "v1beta1")
                external = frozenset(served.name for served in resources if self._matches(served.name))
        except (cluster.ClusterError, MetricsError) as error:
            self._health.record_failure(f"looking up its metrics: {error}")
        else:
            self._health.record_success()
        self._catalogue = Catalogue(custom, external)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _matches(self, metric: str) -> bool:
        return not self._patterns or any(pattern.fullmatch(metric) for pattern in self._patterns)

    async def _resources(self, group: str, version: str) -> tuple[_ApiResource, ...]:
        try:
            path = f"/apis/{group}/{version}"
            return (await self._client.read(f"discovering {path}", path, _ApiResources)).resources
        except cluster.NotFound:
            return ()

    async def _fetch(self, query: MetricQuery, version: str, into: type[T]) -> T:
        request = Request(
            "GET",
            query.path(version),
            query.parameters(),
            deadlines=Deadlines().within(10.0),
            max_body=MAX_BYTES,
        )
        try:
            response = await self._client.sender.send_once(f"querying {self.name}", request)
            decoded = wire.decode(response.body, into)
        except cluster.NotFound as error:
            raise StatusError(404, error.message) from error
        except (cluster.ClusterError, wire.WireError) as error:
            raise self._unread(error) from error
        self._health.record_success()
        return decoded

    def _value(self, text: str, timestamp: datetime | None) -> tuple[Quantity, datetime]:
        try:
            return Quantity.parse(text), timestamp or self._clock.now()
        except QuantityError as error:
            raise self._failed(f"value {text!r}: {error}") from error

    def _unread(self, error: Exception) -> StatusError:
        """Record that the other adapter failed, and return the error for tenants, without its text and address."""
        self._health.record_failure(str(error))
        return StatusError(
            503, f"source {self.name} gives no usable answer at the moment; the adapter's log says why"
        )

    def _failed(self, reason: str) -> StatusError:
        self._health.record_failure(reason)
        return StatusError(503, f"source {self.name}: {reason}")


def _compile(name: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(f"sources: {name}: metrics: {pattern!r}: {error}") from error
