"""The ASGI application of the webhook, with bounded bodies."""

from collections.abc import Callable
from contextlib import nullcontext

from trimtab.model.json import wire
from trimtab.operator.vertical.admission.reviews import Reviewer
from trimtab.serving.asgi import (
    BodyTooLargeError,
    ClientGoneError,
    Message,
    Receive,
    Send,
    read_body,
    send_response,
)

MAX_BYTES = 4 * 1024 * 1024
"""The largest body. etcd stores objects of 1.5 MiB at most, and a review of an update holds two of them."""
HEALTH = frozenset({"/healthz", "/livez", "/readyz"})


class AdmissionApp:
    """Serves reviews and health checks."""

    def __init__(self, reviewer: Reviewer, is_ready: Callable[[], bool] = lambda: True) -> None:
        self._reviewer = reviewer
        self._is_ready = is_ready

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            return
        status, body = await self._answer(scope["method"], scope["path"], receive)
        headers = [(b"content-type", b"application/json")]
        with self._reviewer.writing() if scope["path"] in self._reviewer.paths else nullcontext():
            await send_response(send, status, headers, body)

    async def _answer(self, method: str, path: str, receive: Receive) -> tuple[int, bytes]:
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
        try:
            body = await read_body(receive, MAX_BYTES)
        except BodyTooLargeError:
            return 413, _message(f"the review is larger than {MAX_BYTES} bytes")
        except ClientGoneError:
            return 400, _message("the review ended early")
        if not self._is_ready():
            # The API server then admits the pod unchanged. With incomplete caches its size would be a guess.
            return 503, _message("caches are not complete")
        return 200, await self._reviewer.review(path, body)


def _message(text: str) -> bytes:
    return wire.encode({"message": text})
