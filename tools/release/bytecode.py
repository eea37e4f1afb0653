"""Compiles the modules of the image, so that a start imports bytecode and compiles nothing.

Bytecode with an unchecked hash holds no time of a file, so the same modules give the same bytes. It is compiled by a process of its
own with a fixed hash seed, because the order of constant sets depends on the seed.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.release.archives import Entry
from tools.release.version import ReleaseError

VERSION: Final = (3, 11)
"""The version of Python in the image. Other versions do not read its bytecode."""
_SUFFIX: Final = "cpython-311.pyc"
_FOLDERS: Final = ("usr/lib/python3.11/", "usr/local/lib/python3.11/")


def bytecode(entries: Iterable[Entry]) -> list[Entry]:
    """Return the bytecode of all modules among the entries of a layer."""
    modules = {
        entry.name: entry.content
        for entry in entries
        if entry.name.startswith(_FOLDERS) and entry.name.endswith(".py") and not entry.link
    }
    if sys.version_info[:2] != VERSION:
        raise ReleaseError(
            f"the bytecode of the image is that of Python 3.11, and this is {sys.version_info[0]}.{sys.version_info[1]}; "
            "make the virtual environment with PYTHON=python3.11"
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, content in modules.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _compile(Path(folder))
        return [
            Entry(str(path.relative_to(folder)), path.read_bytes())
            for path in sorted(Path(folder).rglob(f"*.{_SUFFIX}"))
        ]


def _compile(folder: Path) -> None:
    # The prefixes turn the name of a temporary file into that of the module in the image.
    command = [
        sys.executable, "-m", "compileall", "-q", "-q", "-f", "--invalidation-mode", "unchecked-hash",
        "-s", str(folder), "-p", "/", str(folder),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    # A module for another version of Python does not compile, as none would at its import. The others are complete then, too.
    subprocess.run(command, env=environment, capture_output=True, check=False)
