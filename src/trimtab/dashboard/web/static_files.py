"""The page's static files, loaded at start. They contain no data and need no login."""

import hashlib
from importlib import resources
from typing import Final

from trimtab.dashboard.web.http import HTML, TEXT, Reply, WebRequest

_CONTENT_TYPES: Final = {
    "html": HTML,
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": TEXT,
}
_FOLDERS: Final = ("", "vendor")


class StaticFiles:
    """All static files by path."""

    def __init__(self) -> None:
        self._replies: dict[str, tuple[str, Reply]] = {}
        root = resources.files("trimtab.dashboard") / "static"
        for folder in _FOLDERS:
            for entry in (root / folder if folder else root).iterdir():
                content_type = _CONTENT_TYPES.get(entry.name.rpartition(".")[2])
                if content_type is not None and entry.is_file():
                    path = "/".join(part for part in ("/static", folder, entry.name) if part)
                    self._add(path, content_type, entry.read_bytes())
        self._replies["/"] = self._replies["/static/index.html"]
        self._replies["/favicon.ico"] = self._replies["/static/icon.svg"]

    def find(self, request: WebRequest) -> Reply | None:
        """Return the file of a path, among those loaded at start."""
        if request.path not in self._replies:
            return None
        etag, reply = self._replies[request.path]
        cached = request.headers.get("if-none-match", "").split(",")
        is_cached = any(candidate.strip() == etag for candidate in cached)
        return Reply(304, b"", reply.content_type, reply.headers) if is_cached else reply

    def _add(self, path: str, content_type: str, body: bytes) -> None:
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        # The browser revalidates each time, so an upgrade shows at once.
        headers = (("etag", etag), ("cache-control", "no-cache"))
        self._replies[path] = etag, Reply(200, body, content_type, headers)
