"""A list in pages: the next is under way while this one is taken in, and nothing is left under way."""

import asyncio
import gc
from collections.abc import Callable
from contextlib import aclosing

import msgspec
import pytest

from trimtab.cluster.codec.lists import read_pages
from trimtab.cluster.codec.objects import PartialObject
from trimtab.cluster.errors import Gone, error_from_answer
from trimtab.cluster.transport import Response


class Server:
    """Answers with three pages; `order` puts the metadata where API servers do, or last."""

    def __init__(self, *, metadata_first: bool = True, fails_at: str = "") -> None:
        self.asked: list[str] = []
        self.answered = 0
        self._metadata_first = metadata_first
        self._fails_at = fails_at

    async def ask(self, token: str, _into: Callable[[bytes], None]) -> Response:
        self.asked.append(token)
        await asyncio.sleep(0)
        if token and token == self._fails_at:
            raise error_from_answer("listing", 410, {}, b"")
        self.answered += 1
        number = int(token or "0")
        meta = {"metadata": {"resourceVersion": "7", "continue": str(number + 1) if number < 2 else ""}}
        items = {"items": [{"metadata": {"name": f"pod-{number}"}}]}
        return Response(200, {}, msgspec.json.encode(meta | items if self._metadata_first else items | meta))


async def names_in(server: Server) -> list[tuple[str, int]]:
    """Return the names in the order of the pages, with how many pages had been asked for by then."""
    found: list[tuple[str, int]] = []
    async with aclosing(read_pages("listing", PartialObject, server.ask)) as pages:
        async for page in pages:
            found += [(one.metadata.name, len(server.asked)) for one in page.items]
    return found


def test_the_next_page_is_asked_for_before_this_one_is_taken_in():
    server = Server()
    assert asyncio.run(names_in(server)) == [("pod-0", 2), ("pod-1", 3), ("pod-2", 3)]
    assert server.asked == ["", "1", "2"]


def test_a_token_that_is_not_at_the_beginning_is_found_later():
    server = Server(metadata_first=False)
    assert asyncio.run(names_in(server)) == [("pod-0", 1), ("pod-1", 2), ("pod-2", 3)]


def test_a_page_that_expired_is_told_after_those_before_it():
    server = Server(fails_at="1")
    with pytest.raises(Gone):
        asyncio.run(names_in(server))
    assert server.answered == 1


@pytest.mark.parametrize("fails_at", ["", "1"])
@pytest.mark.parametrize("turns", [0, 5])
def test_who_stops_early_leaves_nothing_under_way(fails_at, turns, caplog):
    async def stop_early() -> int:
        async with aclosing(read_pages("listing", PartialObject, Server(fails_at=fails_at).ask)) as pages:
            await anext(pages)
            for _ in range(turns):
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(stop_early()) == 1
    gc.collect()  # a failure that nobody looked at is told when its task goes
    assert not caplog.records


async def test_a_page_is_asked_for_while_the_one_before_it_still_arrives():
    """Never two ahead: the third is asked for when the second is waited for."""
    asked: list[str] = []
    gates = {token: asyncio.Event() for token in ("", "1", "2")}

    async def ask(token: str, into: Callable[[bytes], None]) -> Response:
        asked.append(token)
        more = str(int(token or "0") + 1) if token != "2" else ""
        head = msgspec.json.encode({"metadata": {"resourceVersion": "7", "continue": more}})
        into(head[:-1] + b',"items":[{"metadata":')
        await gates[token].wait()
        into(b'{"name":"pod-%s"}}]}' % token.encode())
        return Response(200, {}, b"")

    async with aclosing(read_pages("listing", PartialObject, ask)) as pages:
        for token, by_then in (("", ["", "1"]), ("1", ["", "1", "2"]), ("2", ["", "1", "2"])):
            waiting = asyncio.ensure_future(anext(pages))
            for _ in range(5):
                await asyncio.sleep(0)
            assert (asked, waiting.done()) == (by_then, False)
            gates[token].set()
            page = await waiting
            assert [one.metadata.name for one in page.items] == [f"pod-{token}"]
            assert page.resource_version == "7"


async def test_a_page_is_gone_when_the_next_one_is_there():
    """All pages of a first list were kept: what refers to itself waits for the collector, which looks seldom."""
    gc.collect()
    gc.disable()
    try:
        server = Server()
        async with aclosing(read_pages("listing", PartialObject, server.ask)) as pages:
            async for page in pages:
                assert page.items
                del page
        assert gc.collect() == 0
    finally:
        gc.enable()
