"""Writes archives with the same bytes for the same content: sorted names, one time, no owners."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory or symbolic link of an archive."""

    name: str
    content: bytes = b""
    mode: int = 0o644
    kind: bytes = tarfile.REGTYPE
    link: str = ""


def directory(name: str, mode: int = 0o755) -> Entry:
    """Return a directory."""
    return Entry(name, mode=mode, kind=tarfile.DIRTYPE)


def symbolic_link(name: str, to: str) -> Entry:
    """Return a symbolic link."""
    return Entry(name, mode=0o777, kind=tarfile.SYMTYPE, link=to)


def tar(entries: Iterable[Entry], seconds: int) -> bytes:
    """Return a tar archive in the format of POSIX, with its entries in order of their names."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in sorted(entries, key=lambda entry: entry.name):
            info = tarfile.TarInfo(entry.name)
            info.type, info.mode, info.linkname = entry.kind, entry.mode, entry.link
            info.mtime, info.size = seconds, len(entry.content)
            archive.addfile(info, io.BytesIO(entry.content))
    return buffer.getvalue()


def compressed(data: bytes) -> bytes:
    """Return gzip without a name and a time."""
    return gzip.compress(data, compresslevel=9, mtime=0)


def files_below(root: Path, prefix: str) -> list[Entry]:
    """Return the files below a directory, under another directory."""
    return [
        Entry(
            f"{prefix}/{path.relative_to(root)}",
            path.read_bytes(),
            0o755 if path.stat().st_mode & 0o100 else 0o644,
        )
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def digest(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
