"""Hands questions on to another adapter, so that several providers share one API group.

Only one server can be registered for a group; this source puts others behind it, chosen by metric name. The user was
authorised here; the other adapter sees this adapter's own credentials, which go to its address alone.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from trimtab.adapter.api.health import Health, RuleHealth
from trimtab.adapter.api.requests import (
    CUSTOM_GROUP,
    EXTERNAL_GROUP,
    CustomQuestion,
    ExternalQuestion,
    Question,
)
from trimtab.adapter.config import ForwardSettings
from trimtab.adapter.errors import AdapterError, ConfigurationError, NotFound, Unavailable
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample, Offer
from trimtab.clock import Clock
from trimtab.cluster import errors as cluster
from trimtab.cluster.client import Client
from trimtab.cluster.transport.transport import Deadlines, Request
from trimtab.metrics.queries import MetricsError
from trimtab.metrics.versions import CustomMetricsVersion
from trimtab.model.json import wire
from trimtab.model.metrics_api import ExternalMetricValueList, MetricValueList
from trimtab.model.quantity import Quantity, QuantityError

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
    """Another adapter."""

    def __init__(self, clock: Clock, name: str, client: Client, settings: ForwardSettings) -> None:
        self._clock = clock
        self._name = name
        self._client = client
        self._patterns = [_compiled(name, pattern) for pattern in settings.metrics]
        unknown = set(settings.groups) - {"custom", "external"}
        if unknown:
            raise ConfigurationError(
                f"sources: {name}: groups: {min(unknown)!r} is neither custom nor external"
            )
        self._groups = frozenset(settings.groups)
        self._version = CustomMetricsVersion(clock, client, believed_for=_VERSION_SECONDS)
        self._health = RuleHealth(clock, f"source {name}")
        self._catalogue = Catalogue()

    @property
    def name(self) -> str:
        """Return the name that the configuration gives it."""
        return self._name

    def serves(self, question: Question) -> bool:
        """Return whether the metric's name is one of those handed on."""
        group = "external" if isinstance(question, ExternalQuestion) else "custom"
        return group in self._groups and self._is_ours(question.metric)

    def catalogue(self) -> Catalogue:
        """Return what the other adapter offered when last asked."""
        return self._catalogue

    def health(self) -> Iterable[Health]:
        """Return whether the other adapter answers."""
        yield self._health.report()

    async def custom(self, question: CustomQuestion) -> Sequence[CustomSample]:
        """Return the other adapter's values, after checking that they are about what was asked (fault F40)."""
        try:
            version = await self._version.current()
        except MetricsError as error:
            raise self._failed(str(error)) from error
        answer = await self._ask(question, version, MetricValueList)
        samples = []
        for item in answer.items:
            named = item.metric.name if item.metric else item.metric_name
            described = item.described_object
            if named != question.metric or not (question.is_about_many or described.name == question.name):
                raise self._failed(f"asked for {question}, got {named} of {described.name}")
            samples.append(
                CustomSample(described.name, *self._value(item.value, item.timestamp), item.window_seconds)
            )
        return samples

    async def external(self, question: ExternalQuestion) -> Sequence[ExternalSample]:
        """Return the other adapter's series."""
        answer = await self._ask(question, "v1beta1", ExternalMetricValueList)
        series = []
        for item in answer.items:
            if item.metric_name != question.metric:
                raise self._failed(f"asked for {question}, got {item.metric_name}")
            series.append(
                ExternalSample(
                    item.metric_labels, *self._value(item.value, item.timestamp), item.window_seconds
                )
            )
        return series

    async def run(self) -> None:
        """Look up what the other adapter offers, until cancelled."""
        while True:
            await self.discover()
            await self._clock.sleep(CATALOGUE_SECONDS)

    async def discover(self) -> None:
        """Ask the other adapter what it offers; what it cannot tell stays as last known."""
        custom, external = self._catalogue.custom, self._catalogue.external
        try:
            if "custom" in self._groups:
                version = await self._version.current()
                custom = frozenset(
                    Offer(resource, metric, one.namespaced)
                    for one in await self._resources(CUSTOM_GROUP, version)
                    for resource, _, metric in [one.name.partition("/")]
                    if self._is_ours(metric)
                )
            if "external" in self._groups:
                found = await self._resources(EXTERNAL_GROUP, "v1beta1")
                external = frozenset(one.name for one in found if self._is_ours(one.name))
        except (cluster.ClusterError, MetricsError) as error:
            self._health.failed(f"looking up its metrics: {error}")
        else:
            self._health.worked()
        self._catalogue = Catalogue(custom, external)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _is_ours(self, metric: str) -> bool:
        return not self._patterns or any(pattern.fullmatch(metric) for pattern in self._patterns)

    async def _resources(self, group: str, version: str) -> tuple[_ApiResource, ...]:
        try:
            path = f"/apis/{group}/{version}"
            return (await self._client.read(f"discovering {path}", path, _ApiResources)).resources
        except cluster.NotFound:
            return ()

    async def _ask(self, question: Question, version: str, into: type[T]) -> T:
        request = Request(
            "GET",
            question.path(version),
            question.parameters(),
            deadlines=Deadlines().within(10.0),
            max_body=MAX_BYTES,
        )
        try:
            answer = await self._client.sender.send_once(f"asking {self._name}", request)
            decoded = wire.decode(answer.body, into)
        except cluster.NotFound as error:
            raise NotFound(error.message) from error
        except (cluster.ClusterError, wire.WireError) as error:
            raise self._failed(str(error)) from error
        self._health.worked()
        return decoded

    def _value(self, text: str, timestamp: datetime | None) -> tuple[Quantity, datetime]:
        try:
            return Quantity.parse(text), timestamp or self._clock.now()
        except QuantityError as error:
            raise self._failed(f"value {text!r}: {error}") from error

    def _failed(self, why: str) -> AdapterError:
        self._health.failed(why)
        return Unavailable(f"source {self._name}: {why}")


def _compiled(name: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(f"sources: {name}: metrics: {pattern!r}: {error}") from error
