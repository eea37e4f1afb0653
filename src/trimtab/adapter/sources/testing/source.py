"""Serves values that were set by hand. Selectors and sums work as in a real source."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trimtab.adapter.api.health import Health, State
from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery, MetricQuery
from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.sources.collapse import Collapse, collapse
from trimtab.adapter.sources.objects import ClusterObjects
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample, Offer
from trimtab.adapter.sources.testing.values import (
    Labels,
    MetricPoint,
    MetricTable,
    load_table,
    object_labels,
)
from trimtab.clock import Clock
from trimtab.serving.tls import WatchedFile

log = logging.getLogger(__name__)
CHECK_SECONDS = 2.0


class TestingSource:
    """Serves values set by hand. When the file changes, it replaces all values, also those set over HTTP."""

    __test__ = False  # for pytest, which collects classes called Test…

    def __init__(self, clock: Clock, name: str, objects: ClusterObjects, file: Path | None = None) -> None:
        self._clock = clock
        self.name = name
        self._objects = objects
        self._file = WatchedFile(file) if file else None
        self._problem = ""
        self.table = MetricTable()
        self.refresh()

    def serves(self, query: MetricQuery) -> bool:
        """Return whether the metric has a value for such objects."""
        if isinstance(query, ExternalMetricQuery):
            return (query.metric, query.namespace) in self.table.external
        return (query.metric, query.resource, query.namespace) in self.table.custom

    def catalogue(self) -> Catalogue:
        """Return every metric that has a value."""
        custom = {
            Offer(resource, metric, bool(namespace) or resource == "namespaces")
            for metric, resource, namespace in self.table.custom
        }
        external = {metric for metric, _ in self.table.external}
        return Catalogue(frozenset(custom), frozenset(external))

    def health(self) -> Iterable[Health]:
        """Return whether the file is valid."""
        yield Health(f"source {self.name}", State.FAILING if self._problem else State.OK, self._problem)

    async def custom(self, query: CustomMetricQuery) -> Sequence[CustomSample]:
        """Return the sum of the matching series per object."""
        objects = self.table.custom.get((query.metric, query.resource, query.namespace), {})
        if query.selects_objects:
            names = await self._selected(query, objects)
        else:
            names = [query.name] if query.name in objects else []
        now = self._clock.now()
        samples = [
            CustomSample(name, point.value, point.timestamp(now), point.setting.window_seconds)
            for name in names
            for point in objects[name].values()
            if query.series.matches(point.labels)
        ]
        return collapse(samples, Collapse.SUM)

    async def external(self, query: ExternalMetricQuery) -> Sequence[ExternalSample]:
        """Return the series that match."""
        points = self.table.external.get((query.metric, query.namespace), {})
        now = self._clock.now()
        return [
            ExternalSample(point.labels, point.value, point.timestamp(now), point.setting.window_seconds)
            for point in points.values()
            if query.series.matches(point.labels)
        ]

    async def run(self) -> None:
        """Follow the file until cancelled."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Load the file if it changed. An invalid file leaves the values in place."""
        if self._file is None or not self._file.has_changed():
            return
        try:
            self.table = load_table(self._file.path)
            self._problem = ""
        except ConfigurationError as error:
            self._problem = str(error)
            log.warning("source %s keeps its values: %s", self.name, error)

    async def close(self) -> None:
        """Do nothing, since there is no connection."""

    async def _selected(
        self, query: CustomMetricQuery, objects: Mapping[str, Mapping[Labels, MetricPoint]]
    ) -> list[str]:
        """Return the selected objects: by the labels set with their values, else by their labels in the cluster."""
        if query.objects.is_empty:
            return list(objects)
        known = {name: object_labels(points) for name, points in objects.items()}
        from_cluster: frozenset[str] = frozenset()
        if any(labels is None for labels in known.values()):
            from_cluster = await self._objects.names(query.resource, query.namespace, query.objects)
        return [
            name
            for name, labels in known.items()
            if (name in from_cluster if labels is None else query.objects.matches(labels))
        ]
