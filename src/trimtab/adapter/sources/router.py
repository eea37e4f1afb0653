"""Which source answers, how long it may take, and how many questions it may have at once.

A source that hangs costs its own questions a 503 and nobody else anything: each has its own slots and deadline, and
equal questions share one flight (faults F42 and F43).
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from trimtab.adapter.api.requests import CustomQuestion, ExternalQuestion, Question
from trimtab.adapter.errors import AdapterError, NotFound, Unavailable
from trimtab.adapter.sources.source import Catalogue, CustomSample, ExternalSample, Source

SLOTS = 64
"""Questions under way at one source; beyond it they wait, within their deadline."""

_Key = tuple[str, Question]


class Router:
    """The sources, in the order in which they are asked."""

    def __init__(self, sources: Sequence[Source], deadline: float) -> None:
        self.sources = tuple(sources)
        self._deadline = deadline
        self._slots = {source.name: asyncio.Semaphore(SLOTS) for source in self.sources}
        self._flights: dict[_Key, asyncio.Task[Any]] = {}

    def catalogue(self) -> Catalogue:
        """Return everything that can be asked for."""
        found = Catalogue()
        for source in self.sources:
            found |= source.catalogue()
        return found

    async def custom(self, question: CustomQuestion) -> Sequence[CustomSample]:
        """Return at least one value, one per object."""
        source = self._source_of(question)
        samples: Sequence[CustomSample] = await self._ask(source, question)
        if not samples:
            raise _nothing(question)
        return samples

    async def external(self, question: ExternalQuestion) -> Sequence[ExternalSample]:
        """Return the series; none is an answer too, and an autoscaler takes it for an error."""
        series: Sequence[ExternalSample] = await self._ask(self._source_of(question), question)
        return series

    async def close(self) -> None:
        """Drop what is under way and close the sources."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        for source in self.sources:
            await source.close()

    def _source_of(self, question: Question) -> Source:
        for source in self.sources:
            if source.serves(question):
                return source
        raise _nothing(question)

    async def _ask(self, source: Source, question: Question) -> Any:
        key = (source.name, question)
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(self._fly(source, question))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight)

    def _landed(self, key: _Key, flight: asyncio.Task[Any]) -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()

    async def _fly(self, source: Source, question: Question) -> Any:
        try:
            async with asyncio.timeout(self._deadline), self._slots[source.name]:
                if isinstance(question, CustomQuestion):
                    return await source.custom(question)
                return await source.external(question)
        except TimeoutError:
            raise Unavailable(f"source {source.name} did not answer within {self._deadline:g} s") from None


def _nothing(question: Question) -> AdapterError:
    if isinstance(question, ExternalQuestion):
        return NotFound(
            f"the server could not find the metric {question.metric} in namespace {question.namespace}"
        )
    if question.is_about_many:
        return NotFound(f"the server could not find the metric {question.metric} for {question.resource}")
    return NotFound(
        f"the server could not find the metric {question.metric} for {question.resource} {question.name}"
    )
