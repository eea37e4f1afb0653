"""Writes files whole or not at all."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file, so that a failure leaves the old content and no other file behind.

    `mode` sets the permissions. By default an existing file keeps its own.
    """
    target = path.resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        target.write_bytes(data)  # a pipe or a device cannot be replaced
        return
    if mode is None:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
