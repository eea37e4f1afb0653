"""Routes queries to sources, with a deadline and a concurrency limit per source.

A source that hangs fails its own queries with 503 and delays no other source. Equal queries share one fetch (faults F42
and F43).
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.adapter.api.health import Health
from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery, MetricQuery
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample, Source
from trimtab.model.status import StatusError

SLOTS = 64
"""Concurrent queries of one source. Further queries wait, within their deadline."""

_Key = tuple[str, MetricQuery]


class Router:
    """Queries the first source that serves a metric."""

    def __init__(self, sources: Sequence[Source], deadline: float) -> None:
        self.sources = tuple(sources)
        self._deadline = deadline
        self._slots = {source.name: asyncio.Semaphore(SLOTS) for source in self.sources}
        self._fetches: dict[_Key, asyncio.Task[Any]] = {}

    def catalogue(self) -> Catalogue:
        """Return the metrics of all sources."""
        catalogue = Catalogue()
        for source in self.sources:
            catalogue |= source.catalogue()
        return catalogue

    def health(self) -> Iterator[Health]:
        """Yield the health of all sources and their rules."""
        for source in self.sources:
            yield from source.health()

    async def custom(self, query: CustomMetricQuery) -> Sequence[CustomSample]:
        """Return one value per object. Raise a StatusError if there is none."""
        samples: Sequence[CustomSample] = await self._fetch_shared(query)
        if not samples:
            raise _not_found(query)
        return samples

    async def external(self, query: ExternalMetricQuery) -> Sequence[ExternalSample]:
        """Return the series, which may be none. HPAs treat none as an error."""
        series: Sequence[ExternalSample] = await self._fetch_shared(query)
        return series

    async def close(self) -> None:
        """Cancel pending fetches and close the sources."""
        fetches = list(self._fetches.values())
        for fetch in fetches:
            fetch.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
        for source in self.sources:
            await source.close()

    async def _fetch_shared(self, query: MetricQuery) -> Any:
        source = next((source for source in self.sources if source.serves(query)), None)
        if source is None:
            raise _not_found(query)
        key = (source.name, query)
        fetch = self._fetches.get(key)
        if fetch is None:
            fetch = self._fetches[key] = asyncio.ensure_future(self._fetch(source, query))
            fetch.add_done_callback(lambda done: self._on_done(key, done))
        return await asyncio.shield(fetch)

    def _on_done(self, key: _Key, fetch: asyncio.Task[Any]) -> None:
        self._fetches.pop(key, None)
        if not fetch.cancelled():
            fetch.exception()  # retrieved, so that asyncio does not log it when every caller is gone

    async def _fetch(self, source: Source, query: MetricQuery) -> Any:
        try:
            async with asyncio.timeout(self._deadline), self._slots[source.name]:
                if isinstance(query, CustomMetricQuery):
                    return await source.custom(query)
                return await source.external(query)
        except TimeoutError:
            raise StatusError(
                503, f"source {source.name} did not answer within {self._deadline:g} s"
            ) from None


def _not_found(query: MetricQuery) -> StatusError:
    if isinstance(query, ExternalMetricQuery):
        where = f"in namespace {query.namespace}"
    else:
        where = f"for {query.resource}" + ("" if query.selects_objects else f" {query.name}")
    return StatusError(404, f"the server could not find the metric {query.metric} {where}")
