"""Refreshes the dashboard's vendored scripts from npm: `python -m tools.vendor_dashboard`.

Only a maintainer runs this, with `npm` at hand. It fetches the pinned tarballs, checks that each is the one that was
reviewed, copies the few files that the dashboard needs with their licence texts, and writes `vendor.json` with the
sha256 of every file. A test compares the committed files with it.
"""

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

VENDOR = Path(__file__).parent.parent / "src/trimtab/dashboard/static/vendor"


@dataclass(frozen=True)
class Package:
    """An npm package at one version, and what is taken from it."""

    name: str
    version: str
    licence: str
    sha256: str
    """Of the tarball that was reviewed."""
    files: dict[str, str]
    """Path in the package by name here."""
    edits: tuple[tuple[str, str], ...] = field(default=())
    """What is replaced in each file, in this order."""


# The page forbids inline scripts, so there is no import map: a bare module name is written as a path.
_BARE_NAME = ('from"preact"', 'from"./preact.js"')
# The maps are not shipped; a browser's tools would ask for them in vain.
_MAPS = tuple((f"\n//# sourceMappingURL={name}.mjs.map", "") for name in ("preact", "hooks"))

PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        "MIT",
        "3c4456766bd32b6b534d52bf4e9c2a29b33e7eedf6e96ed479300ba1a7888ebf",
        {
            "preact.js": "dist/preact.mjs",
            "hooks.js": "hooks/dist/hooks.mjs",
            "LICENSE.preact.txt": "LICENSE",
        },
        (_BARE_NAME, *_MAPS),
    ),
    Package(
        "htm",
        "3.1.1",
        "Apache-2.0",
        "2425b9bee11409177bcabc7f32e319926fc6690c1701c0b257c88bdff2d5ba90",
        {"htm.js": "dist/htm.module.js", "LICENSE.htm.txt": "LICENSE"},
    ),
    Package(
        "uplot",
        "1.6.32",
        "MIT",
        "4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d",
        {
            "uplot.js": "dist/uPlot.iife.min.js",
            "uplot.css": "dist/uPlot.min.css",
            "LICENSE.uplot.txt": "LICENSE",
        },
    ),
)


def fetch(package: Package, directory: Path) -> bytes:
    """Return the package's tarball; raise ValueError if it is not the reviewed one."""
    subprocess.run(
        ["npm", "pack", "--silent", f"{package.name}@{package.version}"], cwd=directory, check=True
    )
    data = (directory / f"{package.name}-{package.version}.tgz").read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != package.sha256:
        raise ValueError(
            f"{package.name} {package.version} has sha256 {found}, not the reviewed {package.sha256}; "
            "review the new tarball and write its sum here"
        )
    return data


def take(package: Package, tarball: bytes) -> dict[str, bytes]:
    """Return the wanted files, edited."""
    taken = {}
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        for name, path in package.files.items():
            member = archive.extractfile(f"package/{path}")
            assert member is not None, f"{package.name} has no file {path}"
            text = member.read().decode()
            for old, new in package.edits:
                text = text.replace(old, new)
            taken[name] = text.encode()
    return taken


def main() -> None:
    """Fetch, copy and write the list."""
    listed = {}
    with tempfile.TemporaryDirectory() as directory:
        for package in PACKAGES:
            for name, data in take(package, fetch(package, Path(directory))).items():
                (VENDOR / name).write_bytes(data)
                listed[name] = {
                    "package": f"{package.name}@{package.version}",
                    "license": package.licence,
                    "sha256": hashlib.sha256(data).hexdigest(),
                }
                print(f"{name}: {len(data)} bytes from {package.name} {package.version}")
    (VENDOR / "vendor.json").write_text(json.dumps(listed, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
