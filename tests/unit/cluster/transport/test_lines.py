"""The lines of a watch are the same however its bytes are cut, and never longer than allowed."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.transport import (
    DEFAULT_MAX_BODY,
    DEFAULT_MAX_LINE,
    Deadlines,
    LineTooLongError,
    Request,
    lines,
)


class Chunks:
    """A response that arrives in these chunks."""

    status = 200
    headers: dict[str, str] = {}

    def __init__(self, chunks):
        self._chunks = chunks

    async def chunks(self):
        for chunk in self._chunks:
            yield chunk


def read(chunks, limit=1000):
    async def main():
        return [line async for line in lines(Chunks(chunks), limit)]

    return asyncio.run(main())


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"d\n", b"\n\n", b"e\nf"]), max_size=8))
def test_however_it_is_cut(chunks):
    whole = b"".join(chunks)
    *complete, _ = whole.split(b"\n")
    assert read(chunks) == [line for line in complete if line]


@pytest.mark.parametrize(
    "chunks", [[b"half", b" line\n"], [b"half line\nrest"], [b"h", b"alf", b" line", b"\n"]]
)
def test_a_line_in_several_chunks_is_one_line(chunks):
    assert read(chunks) == [b"half line"]


@pytest.mark.parametrize(("rest", "fits"), [(10, True), (11, False)])
def test_a_line_that_does_not_end_has_a_limit(rest, fits):
    chunks = [b"first\n", b"x" * 5, b"x" * (rest - 5)]
    if fits:
        assert read(chunks, 10) == [b"first"]
    else:
        with pytest.raises(LineTooLongError, match="more than 10 bytes"):
            read(chunks, 10)


def test_the_limits_of_a_request():
    request = Request("GET", "/x")
    assert (request.max_body, request.max_line) == (DEFAULT_MAX_BODY, DEFAULT_MAX_LINE)
    assert (DEFAULT_MAX_BODY, DEFAULT_MAX_LINE) == (256 * 1024 * 1024, 8 * 1024 * 1024)
    assert request.deadlines == Deadlines(5.0, 10.0, 30.0, float("inf"))


@pytest.mark.parametrize(
    ("limit", "want"),
    [
        (7.0, Deadlines(5.0, 7.0, 7.0, 7.0)),
        (1.0, Deadlines(1.0, 1.0, 1.0, 1.0)),
        (60.0, Deadlines(5.0, 10.0, 30.0, 60.0)),
    ],
)
def test_deadlines_are_only_made_shorter(limit, want):
    assert Deadlines().within(limit) == want
