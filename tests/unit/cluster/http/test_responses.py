"""Reading answers from bytes: framing, interim answers, limits, and what is no answer at all."""

import weakref

import pytest

from trimtab.cluster.http.messages import BadAnswerError, ResponseParser, TooBigError

OK = b"HTTP/1.1 200 OK\r\n"


def read(*pieces, with_body=True, max_body=None):
    parser = ResponseParser()
    parser.expect(with_body=with_body, max_body=max_body)
    for piece in pieces:
        parser.feed(piece)
    return parser


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        pytest.param(OK + b"Content-Length: 2\r\n\r\n{}", 200, b"{}", id="a length"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 200, b"{}", id="chunks"),
        pytest.param(
            OK + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX-End: 1\r\n\r\n",
            200, b"{}", id="chunks with an extension and a trailer",
        ),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", id="204 has no body"),
        pytest.param(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b"", id="304 has no body"),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Hint: 1\r\n\r\n" + OK
            + b"Content-Length: 2\r\n\r\n{}",
            200, b"{}", id="interim answers are not the answer",
        ),
    ],
)  # fmt: skip
def test_an_answer_is_the_same_in_one_piece_and_byte_by_byte(answer, status, body):
    for pieces in ([answer], [bytes([byte]) for byte in answer]):
        parser = read(*pieces)
        assert parser.is_complete
        assert parser.keeps_alive
        assert (parser.status, parser.take_body()) == (status, body)
        assert "x-hint" not in parser.headers


def test_one_parser_reads_answer_after_answer():
    parser = ResponseParser()
    for number in range(3):
        parser.expect(with_body=True, max_body=10)
        parser.feed(OK + b"X-Number: %d\r\nContent-Length: 1\r\n\r\n%d" % (number, number))
        assert parser.take_body() == b"%d" % number
        assert parser.headers["x-number"] == str(number)


@pytest.mark.parametrize(
    ("head", "taken", "left"),
    [
        pytest.param(OK, [b"{", b"}"], b"", id="a good answer"),
        pytest.param(
            b"HTTP/1.1 503 Unavailable\r\n", [], b"{}", id="a failure is left to whoever explains it"
        ),
    ],
)
def test_a_body_may_be_taken_while_it_arrives(head, taken, left):
    parser = ResponseParser()
    pieces: list[bytes] = []
    parser.expect(with_body=True, max_body=2, into=pieces.append)
    for piece in (head + b"Content-Length: 2\r\n\r\n{", b"}"):
        parser.feed(piece)
    assert parser.is_complete
    assert (pieces, parser.take_body()) == (taken, left)


def test_who_took_a_body_is_forgotten_when_it_is_whole():
    """An idle connection held the usage of all pods until it was used again."""
    parser = ResponseParser()
    pieces = Pieces()
    held = weakref.ref(pieces)
    parser.expect(with_body=True, max_body=2, into=pieces.append)
    parser.feed(OK + b"Content-Length: 2\r\n\r\n{}")
    assert pieces == [b"{}"]
    del pieces
    assert held() is None


class Pieces(list[bytes]):
    """A list that can be referred to weakly."""


def test_a_body_that_is_taken_has_its_limit_too():
    parser = ResponseParser()
    pieces: list[bytes] = []
    parser.expect(with_body=True, max_body=3, into=pieces.append)
    parser.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
    with pytest.raises(TooBigError):
        parser.feed(b"2\r\n{}\r\n")
    assert pieces == [b"{}"]


def test_a_repeated_header_is_a_list():
    parser = read(OK + b"Warning: a\r\nWARNING: b\r\nContent-Length: 0\r\n\r\n")
    assert parser.headers["warning"] == "a, b"
    assert len(parser.headers) == 2


def test_the_answer_to_a_head_ends_with_its_head_and_so_does_the_connection():
    parser = read(OK + b"Content-Length: 500\r\n\r\n", with_body=False, max_body=10)
    assert parser.is_complete
    assert not parser.keeps_alive


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}", id="the server says close"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", id="HTTP/1.0"),
        pytest.param(
            OK + b"Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\n", id="more than was asked for"
        ),
        pytest.param(OK + b"Content-Length: 2\r\n\r\n{}garbage", id="garbage after the answer"),
    ],
)
def test_an_answer_after_which_the_connection_is_not_used_again(answer):
    parser = read(answer)
    assert parser.is_complete
    assert parser.take_body() == b"{}"
    assert len(parser.headers) <= 2
    assert not parser.keeps_alive


def test_without_a_length_the_end_of_the_connection_is_the_end_of_the_answer():
    parser = read(OK + b"\r\n{}")
    assert not parser.is_complete
    assert parser.end()
    assert parser.take_body() == b"{}"
    for half in (
        b"",
        b"HTTP/1.1 200",
        OK + b"Content-Length: 9\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    ):
        assert not read(*([half] if half else [])).end()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"not http\r\n\r\n", id="not HTTP"),
        pytest.param(OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", id="two lengths"),
        pytest.param(OK + b"Content-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="length and chunks"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", id="a chunk whose size is no number"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", id="another protocol"),
        pytest.param(OK + b"X: " + b"a" * 300_000, id="a head without an end"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(answer):
    with pytest.raises(BadAnswerError):
        read(answer)


@pytest.mark.parametrize(
    ("answer", "encoding"),
    [
        (b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nz", "gzip"),
        (b"Transfer-Encoding: gzip, chunked\r\n\r\n", "gzip, chunked"),
        (b"Content-Encoding: Identity\r\nTransfer-Encoding: Chunked\r\n\r\n", ""),
    ],
)
def test_an_encoded_body_is_noticed(answer, encoding):
    assert read(OK + answer).encoding == encoding


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"Content-Length: 11\r\n\r\n", id="announced"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n", id="chunk by chunk"),
        pytest.param(b"\r\n01234567890", id="without a length"),
    ],
)
def test_a_body_beyond_the_limit_is_refused_when_it_is_seen(answer):
    with pytest.raises(TooBigError):
        read(OK + answer, max_body=10)
