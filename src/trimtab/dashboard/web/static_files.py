"""The page's own files, read once when the program starts; they hold no data and need no login."""

import hashlib
from importlib import resources
from typing import Final

from trimtab.dashboard.web.http import HTML, TEXT, Reply, WebRequest

_KINDS: Final = {
    "html": HTML,
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": TEXT,
}
_FOLDERS: Final = ("", "vendor")


class Files:
    """Every static file by the path it is served at."""

    def __init__(self) -> None:
        self._replies: dict[str, tuple[str, Reply]] = {}
        root = resources.files("trimtab.dashboard") / "static"
        for folder in _FOLDERS:
            where = root / folder if folder else root
            for entry in where.iterdir():
                kind = _KINDS.get(entry.name.rpartition(".")[2])
                if kind is not None and entry.is_file():
                    path = "/".join(part for part in ("/static", folder, entry.name) if part)
                    self._add(path, kind, entry.read_bytes())
        self._replies["/"] = self._replies["/static/index.html"]
        self._replies["/favicon.ico"] = self._replies["/static/icon.svg"]

    def find(self, request: WebRequest) -> Reply | None:
        """Return the file at a path; nothing is looked up on disk, so no path leads anywhere else."""
        found = self._replies.get(request.path)
        if found is None:
            return None
        tag, reply = found
        return Reply(304, b"", reply.kind, reply.headers) if _knows(request, tag) else reply

    def _add(self, path: str, kind: str, body: bytes) -> None:
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        # The browser asks each time whether the file is still the same: an upgrade shows at once.
        self._replies[path] = tag, Reply(200, body, kind, (("etag", tag), ("cache-control", "no-cache")))


def _knows(request: WebRequest, tag: str) -> bool:
    given = request.headers.get("if-none-match", "")
    return tag in (one.strip() for one in given.split(","))
