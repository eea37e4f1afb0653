"""Answers questions from values that were set by hand, as honestly as a real source: selectors choose, sums are sums."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trimtab.adapter.api.health import Health, State
from trimtab.adapter.api.requests import CustomQuestion, ExternalQuestion, Question
from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.sources.collapse import Collapse, collapse
from trimtab.adapter.sources.objects import Objects
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample, Offer
from trimtab.adapter.sources.testing.values import (
    Labels,
    MetricPoint,
    MetricTable,
    Value,
    object_labels,
    read_values,
    table_of,
)
from trimtab.clock import Clock
from trimtab.serving.tls import WatchedFile

log = logging.getLogger(__name__)
CHECK_SECONDS = 2.0


class TestingSource:
    """Values set by hand; those of the file are read again when it changes, which replaces what was set over HTTP."""

    __test__ = False  # the name is the source's, and no test for pytest

    def __init__(self, clock: Clock, name: str, objects: Objects, file: Path | None = None) -> None:
        self._clock = clock
        self._name = name
        self._objects = objects
        self._file = WatchedFile(file) if file else None
        self._problem = ""
        self.table = MetricTable()
        self.refresh()

    @property
    def name(self) -> str:
        """Return the name that the configuration gives it."""
        return self._name

    def put(self, value: Value) -> None:
        """Set one series."""
        self.table.put(value)

    def serves(self, question: Question) -> bool:
        """Return whether any value of the metric was set for such objects."""
        if isinstance(question, ExternalQuestion):
            return (question.metric, question.namespace) in self.table.external
        return (question.metric, question.resource, question.namespace) in self.table.custom

    def catalogue(self) -> Catalogue:
        """Return every metric that has a value."""
        custom = {
            Offer(resource, metric, bool(namespace) or resource == "namespaces")
            for (metric, resource, namespace), objects in self.table.custom.items()
            if any(objects.values())
        }
        external = {metric for (metric, _), shelf in self.table.external.items() if shelf}
        return Catalogue(frozenset(custom), frozenset(external))

    def health(self) -> Iterable[Health]:
        """Return whether the file could be read."""
        yield Health(f"source {self._name}", State.FAILING if self._problem else State.OK, self._problem)

    async def custom(self, question: CustomQuestion) -> Sequence[CustomSample]:
        """Return the sum of the series that match, per object."""
        objects = self.table.custom.get((question.metric, question.resource, question.namespace), {})
        if question.is_about_many:
            names = await self._selected(question, objects)
        else:
            names = [question.name] if question.name in objects else []
        now = self._clock.now()
        samples = [
            CustomSample(name, point.value, point.timestamp(now), point.setting.window_seconds)
            for name in names
            for point in objects[name].values()
            if question.series.matches(point.labels)
        ]
        return collapse(samples, Collapse.SUM)

    async def external(self, question: ExternalQuestion) -> Sequence[ExternalSample]:
        """Return the series that match."""
        shelf = self.table.external.get((question.metric, question.namespace), {})
        now = self._clock.now()
        return [
            ExternalSample(point.labels, point.value, point.timestamp(now), point.setting.window_seconds)
            for point in shelf.values()
            if question.series.matches(point.labels)
        ]

    async def run(self) -> None:
        """Follow the file until cancelled."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Read the file if it changed; one that cannot be used leaves the values as they are."""
        if self._file is None or not self._file.has_changed():
            return
        try:
            self.table = table_of(read_values(self._file.path))
            self._problem = ""
        except ConfigurationError as error:
            self._problem = str(error)
            log.warning("source %s keeps its values: %s", self._name, error)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def _selected(
        self, question: CustomQuestion, objects: Mapping[str, Mapping[Labels, MetricPoint]]
    ) -> list[str]:
        """Return the objects whose own labels match: those given with the values, else those that the cluster knows."""
        if question.objects.is_empty:
            return list(objects)
        known = {name: object_labels(points) for name, points in objects.items()}
        from_cluster: frozenset[str] = frozenset()
        if any(labels is None for labels in known.values()):
            from_cluster = await self._objects.names(question.resource, question.namespace, question.objects)
        return [
            name
            for name, labels in known.items()
            if (name in from_cluster if labels is None else question.objects.matches(labels))
        ]
