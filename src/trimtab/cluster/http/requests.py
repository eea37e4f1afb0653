"""Encodes requests. The parts that all requests share are encoded once."""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlencode

from trimtab.cluster.transport.transport import Query, Request

_TARGET = re.compile(r"/[!-~]*")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class HeadWriter:
    """Encodes the heads of requests to a server. `fixed` headers are part of each."""

    def __init__(self, host: str, prefix: str, fixed: Iterable[tuple[str, str]]) -> None:
        self._prefix = prefix
        """The prefix of every target: the server's base path, or its whole address for a proxy."""
        self._fixed = [("Host", host), *fixed]
        self._lines = "".join(header_line(*pair) for pair in self._fixed)
        self._names = frozenset(name.lower() for name, _ in self._fixed)

    def write(self, request: Request) -> bytes:
        """Return the bytes of a request. Its own headers replace fixed ones of the same name."""
        return self.write_parts(
            request.method,
            request.path + query_text(request.query),
            request.headers.items(),
            request.body,
        )

    def write_parts(
        self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None
    ) -> bytes:
        """Return the bytes of a request whose headers may repeat."""
        if not _TARGET.fullmatch(target):
            raise ValueError(f"{target!r} is not a path that can be asked for")
        own = ""
        fixed = self._lines
        for name, value in headers:
            own += header_line(name, value)
            if name.lower() in self._names:
                fixed = self._without(name.lower(), fixed)
        if body:
            own += f"Content-Length: {len(body)}\r\n"
        elif method in _WITH_BODY:
            own += "Content-Length: 0\r\n"
        head = f"{method} {self._prefix}{target} HTTP/1.1\r\n{fixed}{own}\r\n".encode("latin-1")
        return head + body if body else head

    def _without(self, name: str, lines: str) -> str:
        kept = [line for line in lines.splitlines(keepends=True) if line.partition(":")[0].lower() != name]
        return "".join(kept)


@lru_cache(maxsize=256)
def header_line(name: str, value: str) -> str:
    """Return a header line. Reject a value that would start another line."""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise ValueError(f"the header {name!r} cannot be sent: it holds a character that HTTP does not allow")
    return f"{name}: {value}\r\n"


def query_text(query: Query) -> str:
    """Return the query with its question mark."""
    return _encoded(tuple(query)) if query else ""


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return f"?{urlencode(query)}"
