"""The ASGI application of the webhook, with bounded bodies."""

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from typing import Any

from trimtab.model.json import wire
from trimtab.operator.vertical.admission.reviews import Reviewer

Message = MutableMapping[str, Any]
MAX_BYTES = 16 * 1024 * 1024
"""The largest body. An API server accepts objects of 3 MiB, and a review holds two of them."""
HEALTH = frozenset({"/healthz", "/livez", "/readyz"})


class AdmissionApp:
    """Serves reviews and health checks."""

    def __init__(self, reviewer: Reviewer, is_ready: Callable[[], bool] = lambda: True) -> None:
        self._reviewer = reviewer
        self._is_ready = is_ready

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            return
        status, body = await self._answer(scope["method"], scope["path"], receive)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        with self._reviewer.writing() if scope["path"] in self._reviewer.paths else nullcontext():
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, method: str, path: str, receive: Callable[[], Awaitable[Message]]
    ) -> tuple[int, bytes]:
        if path in HEALTH:
            return (
                (200, b'{"status":"ok"}')
                if self._is_ready()
                else (503, b'{"status":"caches are not complete"}')
            )
        if path not in self._reviewer.paths:
            paths = ", ".join(sorted(self._reviewer.paths))
            return 404, _message(f"there is no webhook at {path[:100]}; there are {paths}")
        if method != "POST":
            return 405, _message(f"reviews are sent with POST, not {method}")
        body = await _read(receive)
        if body is None:
            return 413, _message(f"the review is larger than {MAX_BYTES} bytes")
        if not self._is_ready():
            # The API server then admits the pod unchanged. With incomplete caches its size would be a guess.
            return 503, _message("caches are not complete")
        return 200, (await self._reviewer.review(path, body)).body


def _message(text: str) -> bytes:
    return wire.encode({"message": text})


async def _read(receive: Callable[[], Awaitable[Message]]) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BYTES:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
