"""A few blocking calls to the API server, apart from the client that is being measured."""

import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]

_SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? ([-+0-9.eE]+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PATIENCE = 60


def unverified() -> ssl.SSLContext:
    """Return a context for loopback servers whose certificates nobody signed."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Api:
    """The API server, as administrator."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._context = unverified()

    def text(self, path: str, method: str = "GET", body: object = None, content_type: str = "") -> str:
        """Ask once, or again while the server's caches are still being filled (429)."""
        headers = self._headers | ({"Content-Type": content_type} if content_type else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60, context=self._context) as answer:
                    return str(answer.read().decode())
            except urllib.error.HTTPError as error:
                if error.code != 429 or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"{method} {path}: {error.code} {error.read().decode(errors='replace')[:500]}"
                    ) from error
                time.sleep(0.5)

    def get(self, path: str) -> Json:
        """Return one object or list."""
        answer: Json = json.loads(self.text(path))
        return answer

    def create(self, path: str, body: Json, manager: str) -> Json:
        """Create an object under a field manager's name."""
        answer: Json = json.loads(self.text(f"{path}?fieldManager={manager}", "POST", body))
        return answer

    def merge(self, path: str, body: Json, manager: str) -> Json:
        """Merge into an object."""
        kind = "application/merge-patch+json"
        answer: Json = json.loads(self.text(f"{path}?fieldManager={manager}", "PATCH", body, kind))
        return answer

    def count(self, path: str) -> int:
        """Return how many objects a list would have."""
        page = self.get(f"{path}?limit=1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    def open_watch(
        self, path: str, version: str
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        """Open a watch; whoever opens it reads its lines and closes the connection."""
        place = urlsplit(self.url)
        connection = http.client.HTTPSConnection(str(place.hostname), place.port, context=self._context)
        connection.request(
            "GET", f"{path}?watch=1&resourceVersion={version}&timeoutSeconds=3600", headers=self._headers
        )
        return connection, connection.getresponse()


def series(text: str, *names: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yield name, labels and value of the named series of a /metrics page."""
    for line in text.splitlines():
        if line.startswith(names):
            match = _SERIES.match(line)
            if match:
                yield match[1], dict(_LABEL.findall(match[2] or "")), float(match[3])


def requests_by_kind(text: str) -> dict[str, float]:
    """Return the API server's own count of requests, as `VERB group/resource/subresource`; watches are not counted."""
    counts: dict[str, float] = {}
    for _, labels, value in series(text, "apiserver_request_total"):
        resource = labels.get("resource")
        # The server renews leases of its own.
        if not resource or resource == "leases" or labels.get("verb") in {"WATCH", "CONNECT"}:
            continue
        path = "/".join(part for part in (labels.get("group"), resource, labels.get("subresource")) if part)
        key = f"{labels['verb']} {path}"
        counts[key] = counts.get(key, 0.0) + value
    return counts
