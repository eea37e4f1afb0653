"""One function per way in. Each runs the production code on any bytes and asserts what must hold.

A documented error is an answer. Every other exception, a disagreement with a reference, an answer that depends on how bytes were
cut, and an input that takes too many steps are findings.
"""

import io
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.fuzz import references
from tests.fuzz.engine import Target
from trimtab import cli
from trimtab.adapter.api.requests import CustomMetricQuery
from trimtab.adapter.api.routes import is_metrics_path, route, split_path
from trimtab.clock import SystemClock
from trimtab.cluster.codec import lists as list_reading
from trimtab.cluster.codec.lists import ListDecoder
from trimtab.cluster.codec.objects import decode_page, event_decoder
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.errors import ClusterError, ConfigError
from trimtab.cluster.http.messages import HttpProblem, ResponseParser
from trimtab.cluster.transport import LineTooLongError, lines
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.model.quantity import Quantity
from trimtab.model.quantity_syntax import MAX_DIGITS, MAX_TEXT, QuantityError
from trimtab.model.status import StatusError

DATA = Path(__file__).parents[1] / "data" / "fuzz"
MAX_BODY = 1000
LONGEST_MESSAGE = 4096


@dataclass(frozen=True)
class FuzzTarget:
    """A way in, with the words that its inputs consist of."""

    run: Target
    words: tuple[bytes, ...]

    def seeds(self, name: str) -> list[bytes]:
        """Return the kept inputs, in a fixed order."""
        return [path.read_bytes() for path in sorted((DATA / name).iterdir())]


def pieces_of(data: bytes, size: int) -> Iterator[bytes]:
    """Yield the bytes in pieces of a size."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


def http(data: bytes) -> None:
    """Read an answer as the client does: whole, in pieces, and as h11 reads it."""
    method = "HEAD" if data[:1] == b"H" and data[:4] != b"HTTP" else "GET"
    stream = data[1:] if method == "HEAD" else data
    whole = _read_answer([stream], method)
    for size in (1, 7):
        cut = _read_answer(list(pieces_of(stream, size)), method)
        # An error may be noticed earlier or later; a whole answer is the same however it arrives.
        if isinstance(whole, references.HttpAnswer) and isinstance(cut, references.HttpAnswer):
            assert cut == whole, f"in pieces of {size} bytes: {cut}; whole: {whole}"
    wanted = references.http_answer(stream, method)
    if isinstance(whole, references.HttpAnswer) and isinstance(wanted, references.HttpAnswer):
        assert whole == wanted, f"h11 reads {wanted}, we read {whole}"


def _read_answer(pieces: list[bytes], method: str) -> references.HttpAnswer | str:
    parser = ResponseParser()
    parser.expect(with_body=method != "HEAD", max_body=MAX_BODY)
    try:
        for piece in pieces:
            if parser.is_complete:
                break
            parser.feed(piece)
            held = sum(map(len, parser.parts))
            assert held <= MAX_BODY, f"{held} bytes of a body are held, of which {MAX_BODY} are allowed"
    except HttpProblem as problem:
        return str(problem)
    dict(parser.headers)
    if not parser.end():
        return "incomplete"
    assert 200 <= parser.status <= 999, f"status {parser.status}"
    return references.HttpAnswer(parser.status, parser.take_body())


def watch(data: bytes) -> None:
    """Read a stream of events, in pieces of two sizes."""
    size = data[0] % 64 + 1 if data else 1
    seen = [_read_events(list(pieces_of(data[1:], cut))) for cut in (size, len(data) or 1)]
    first, second = seen
    if first[1] is None and second[1] is None:
        assert first == second, f"in pieces of {size} bytes: {first}; whole: {second}"


def _read_events(pieces: list[bytes]) -> tuple[list[Any], str | None]:
    class Stream:
        status = 200
        headers: Mapping[str, str] = {}

        async def chunks(self) -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

    decode, events = event_decoder(Pod), list[Any]()

    async def read() -> None:
        events.extend([decode(line) async for line in lines(Stream(), 2048)])

    try:
        _drive(read())
    except (wire.WireError, LineTooLongError) as error:
        return events, type(error).__name__
    return events, None


def _drive(coroutine: Any) -> None:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("the coroutine waits")


def lists(data: bytes) -> None:
    """Read a list while it arrives, and whole."""
    size = data[0] % 64 + 1 if data else 1
    body = data[1:]
    whole = _outcome(lambda: decode_page("listing", body, Pod))

    def arriving() -> Any:
        decoder = ListDecoder(Pod)
        for piece in pieces_of(body, size):
            decoder.feed(piece)
        return decoder.finish_page("listing")

    enough, list_reading.SLICE = list_reading.SLICE, 64
    try:
        streamed = _outcome(arriving)
    finally:
        list_reading.SLICE = enough
    if isinstance(whole, str) or isinstance(streamed, str):
        return
    if body.count(b'"items"') <= 1 and body.count(b'"metadata"') == body.count(b'{"metadata"'):
        assert list(streamed.items) == list(whole.items), f"arriving: {streamed}; whole: {whole}"


def _outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (ClusterError, wire.WireError) as error:
        return type(error).__name__


def adapter(data: bytes) -> None:
    """Parse a path and a query: what is authorized is what is read, also after a trip through the forwarding source."""
    raw_path, _, query_string = data.partition(b"?")
    try:
        parts = split_path(raw_path)
        if not is_metrics_path(parts):
            return
        found = route(parts, query_string)
    except StatusError as error:
        _check_length(str(error))
        return
    query = found.query
    named = query.namespace
    if isinstance(query, CustomMetricQuery) and query.resource == "namespaces":
        named = query.name
    assert found.attributes.namespace == named, f"authorizes {found.attributes}, reads {query}"
    again = urlencode(query.parameters()).encode()
    assert route(split_path(query.path(found.version).encode()), again) == found


def selector(data: bytes) -> None:
    """Parse a selector, print it, parse it again, and match labels as the documentation says."""
    text = data.decode("utf-8", "replace")
    try:
        found = Selector.parse(text)
    except SelectorError as error:
        _check_length(str(error))
        return
    assert Selector.parse(str(found)) == found, (
        f"{text!r} prints as {str(found)!r}, which is another selector"
    )
    rows = [(item.key, item.operator, tuple(item.values)) for item in found.requirements]
    words = sorted({word for key, _, values in rows for word in (key, *values)})[:6]
    samples: list[dict[str, str]] = [
        {},
        *({key: value} for key, _, _ in rows[:4] for value in (*words, "7", "-7")),
    ]
    samples.append({key: values[0] for key, _, values in rows if values})
    for labels in samples:
        assert found.matches(labels) == references.selector_matches(rows, labels), f"{found} on {labels}"


def quantity(data: bytes) -> None:
    """Parse a quantity, compare it with exact arithmetic, and print it without loss."""
    text = data.decode("utf-8", "replace")
    wanted = references.quantity_nanos(text) if len(text) <= MAX_TEXT else None
    try:
        found = Quantity.parse(text)
    except QuantityError:
        is_small = wanted is not None and len(str(abs(wanted))) <= MAX_DIGITS
        assert not is_small, f"{text!r} is refused and means {wanted} nanos"
        return
    if wanted is not None:
        assert found.nanos == wanted, f"{text!r}: {found.nanos} nanos, wanted {wanted}"
    assert Quantity.parse(str(found)) == found, f"{text!r} prints as {found}"


def kubeconfig(data: bytes) -> None:
    """Load a kubeconfig: a connection, or an error of one line."""
    path = _scratch() / "kubeconfig"
    path.write_bytes(data)
    try:
        load_kubeconfig(SystemClock(), str(path), environ={})
    except ConfigError as error:
        _check_length(str(error))
        _check_one_line(str(error))


def manifests(data: bytes) -> None:
    """Validate and convert manifests: findings or one line, never a defect."""
    path = _scratch() / "manifest.yaml"
    path.write_bytes(data)
    for command in (["validate"], ["convert", "--to", "v1"]):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.answer([*command, str(path)])
        assert code in {0, 1, 2}, f"{command}: exit code {code}: {err.getvalue()}"


def _check_length(message: str) -> None:
    assert len(message) <= LONGEST_MESSAGE, f"an error repeats a long input: {message[:80]}"


def _check_one_line(message: str) -> None:
    assert "\n" not in message, f"an error of several lines: {message!r}"


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def _scratch() -> Path:
    if not _FOLDERS:
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        _FOLDERS.append(tempfile.TemporaryDirectory(prefix="trimtab-fuzz-", dir=shared))
    return Path(_FOLDERS[0].name)


def webhook(data: bytes) -> None:
    """Review any body: a valid answer, pods allowed, patches that apply, and no internal error."""
    from tests.fuzz.webhook import reviews  # imported when it runs: it starts a cluster

    reviews().check(data)


_JSON = (b'{"', b'":', b"[]", b"{}", b"null", b"true", b'"metadata":{', b'"spec":{', b'"name":"', b"\\u0000", b"\\ud83d", b"1e999", b"},{")  # fmt: skip
_YAML = (b"&a ", b"*a", b"<<: *a\n", b"- ", b": ", b"\n  ", b"!!python/object ", b"? ", b"---\n", b"'", b'"', b"|\n", b"\t", b"~", b"0x1F", b"1:30", b"{", b"[")  # fmt: skip

TARGETS: dict[str, FuzzTarget] = {
    "http": FuzzTarget(http, (b"HTTP/1.1 ", b"HTTP/1.0 ", b"\r\n", b"\n", b"\r\n\r\n", b"Content-Length: ", b"Transfer-Encoding: chunked\r\n", b"chunked", b"gzip", b"0\r\n\r\n", b"Connection: close\r\n", b"Connection: upgrade\r\nUpgrade: x\r\n", b"100 Continue", b"101 Switching", b"103 Hints", b"204 No", b"304 Not", b"\r\n ", b"\x00", b" :", b";a=b", b"5\r\nhello\r\n")),
    "watch": FuzzTarget(watch, (*_JSON, b"\n", b"\r\n", b'"type":"ADDED"', b'"type":"BOOKMARK"', b'"type":"ERROR"', b'"resourceVersion":"')),
    "lists": FuzzTarget(lists, (*_JSON, b'"items":[', b'"continue":"', b'"kind":"Status"')),
    "adapter": FuzzTarget(adapter, (b"/namespaces/", b"/metrics/", b"/*/", b"%2F", b"%2e%2e", b"%00", b"%25", b"//", b"labelSelector=", b"metricLabelSelector=", b"&", b"a%20in%20(b)", b"pods", b"statefulsets.apps", b"\xff", b"%C3%A9")),
    "selector": FuzzTarget(selector, (b" in (", b" notin (", b"!", b"!=", b"==", b"=", b",", b")", b">", b"<", b"a.b/c", b"in", b"notin", b" ", b"\t", "é".encode())),
    "quantity": FuzzTarget(quantity, (b"Ki", b"Ei", b"E", b"e", b"m", b"n", b"u", b"k", b".", b"-", b"+", b"e-9", b"E5", b"999999999", b"\xd9\xa1", b"\n", b" ", b"_")),
    "kubeconfig": FuzzTarget(kubeconfig, (*_YAML, b"clusters:\n", b"certificate-authority-data: ", b"server: https://[::1]:1", b"token: ", b"exec:\n", b"proxy-url: ", b"insecure-skip-tls-verify: true", b"current-context: ", b"as: ", b"null")),
    "manifests": FuzzTarget(manifests, (*_YAML, b"apiVersion: autoscaling/v2\n", b"kind: List\nitems:\n", b"kind: HorizontalPodAutoscaler\n", b"kind: VerticalPodAutoscaler\n", b"averageUtilization: ", b"minReplicas: ", b"metrics:\n", b"1e400", b"matchLabels: ")),
    "webhook": FuzzTarget(webhook, (*_JSON, b'"operation":"', b"CREATE", b"UPDATE", b"DELETE", b'"object":', b'"oldObject":', b'"containers":[', b'"resources":{"requests":{"cpu":"', b'"updatePolicy":{', b'"resourcePolicy":{"containerPolicies":[')),
}  # fmt: skip
"""All ways in, by name."""


def disable_logs() -> None:
    """Let what Trimtab logs about bad inputs be lost."""
    logging.disable(logging.WARNING)
