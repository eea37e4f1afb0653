"""The Debian packages of the image's base, pinned in requirements/image.lock.

    python -m tools.release.debian    renew the lock: the newest version of each package, security fixes included

Each line of the lock is the path of a package below a mirror, and its SHA-256. A package that is not exactly that one is refused.
"""

import functools
import hashlib
import io
import lzma
import os
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.release.archives import Entry, directory, symbolic_link
from tools.release.version import ROOT, ReleaseError

LOCK: Final = ROOT / "requirements" / "image.lock"
RELEASE: Final = "bookworm"
_INDEXES: Final = (
    f"debian/dists/{RELEASE}/main/binary-amd64/Packages.xz",
    f"debian/dists/{RELEASE}-updates/main/binary-amd64/Packages.xz",
    f"debian-security/dists/{RELEASE}-security/main/binary-amd64/Packages.xz",
)
PACKAGES: Final = (
    "base-files", "ca-certificates", "libbz2-1.0", "libc6", "libcrypt1", "libdb5.3", "libexpat1", "libffi8", "libgcc-s1",
    "liblzma5", "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libstdc++6", "libuuid1",
    "media-types", "netbase", "python3.11-minimal", "tzdata", "zlib1g",
)  # fmt: skip
"""Python and what it and the wheels are linked with: no shell, no package manager, no compiler."""

_MERGED: Final = ("bin", "lib", "lib64", "sbin")
"""Directories that are links into /usr."""
_LEFT_OUT: Final = ("usr/share/doc/", "usr/share/man/", "usr/share/lintian/", "usr/share/bug/")


@dataclass(frozen=True, slots=True)
class Package:
    """A pinned package."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """The package's name."""
        return Path(self.path).name.split("_")[0]

    @property
    def version(self) -> str:
        """The package's version, without an epoch."""
        return Path(self.path).name.split("_")[1].replace("%3a", ":")


def read_lock(text: str) -> list[Package]:
    """Return the packages of a lock."""
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [Package(path, sha256.removeprefix("sha256:")) for path, sha256 in lines]


def base(cache: Path) -> Iterator[Entry]:
    """Yield the entries of the base: the packages' files, and what their scripts would make."""
    if shutil.which("dpkg-deb") is None:
        raise ReleaseError("the image needs dpkg-deb to unpack the packages of its base; install dpkg")
    found: dict[str, Entry] = {name: symbolic_link(name, f"usr/{name}") for name in _MERGED}
    for name in (
        "usr",
        *(f"usr/{name}" for name in _MERGED),
        "etc",
        "etc/ssl",
        "etc/ssl/certs",
        "root",
        "var",
        "var/lib",
    ):
        found[name] = directory(name)
    found["tmp"] = directory("tmp", 0o1777)
    authorities = []
    for package in read_lock(LOCK.read_text(encoding="utf-8")):
        file = _fetched(package, cache)
        for entry in _unpacked(file):
            found[entry.name] = entry
            if entry.name.startswith("usr/share/ca-certificates/mozilla/") and entry.content:
                authorities.append(entry)
        control = subprocess.run(["dpkg-deb", "--field", file], capture_output=True, check=True).stdout
        # Scanners find the packages of an image without a package manager here.
        found[f"var/lib/dpkg/status.d/{package.name}"] = Entry(
            f"var/lib/dpkg/status.d/{package.name}", control
        )
    bundle = b"".join(entry.content for entry in sorted(authorities, key=lambda entry: entry.name))
    found["etc/ssl/certs/ca-certificates.crt"] = Entry("etc/ssl/certs/ca-certificates.crt", bundle)
    found["etc/passwd"] = Entry(
        "etc/passwd",
        b"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n",
    )
    found["etc/group"] = Entry("etc/group", b"root:x:0:\nnonroot:x:65532:\n")
    yield from found.values()


def _fetched(package: Package, cache: Path) -> Path:
    file = cache / f"{package.sha256}.deb"
    if not file.exists():
        try:
            data = _get(package.path)
        except OSError as error:
            raise ReleaseError(
                f"{package.path} cannot be fetched: {error}; a version that Debian replaced is gone: "
                "renew the lock with `python -m tools.release.debian`"
            ) from error
        if hashlib.sha256(data).hexdigest() != package.sha256:
            raise ReleaseError(f"{package.path} is not the package of {LOCK.name}: its SHA-256 differs")
        cache.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return file


def _unpacked(file: Path) -> Iterator[Entry]:
    data = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            name = member.name.removeprefix("./").rstrip("/")
            first = name.partition("/")[0]
            if name in ("", ".", *_MERGED) or name.startswith(_LEFT_OUT):
                continue
            name = f"usr/{name}" if first in _MERGED else name
            if member.islnk() or member.isreg():
                content = archive.extractfile(member)
                assert content is not None
                yield Entry(name, content.read(), member.mode & 0o755)
            elif member.issym():
                yield symbolic_link(name, member.linkname)
            elif member.isdir():
                yield directory(name, member.mode & 0o1777)


@functools.cache
def mirror() -> str:
    """Return the mirror of Debian: DEBIAN_MIRROR, or the one that apt uses on this machine."""
    if chosen := os.environ.get("DEBIAN_MIRROR"):
        return chosen.rstrip("/")
    if shutil.which("apt-get") is not None:
        asked = ["apt-get", "indextargets", "--format", "$(SITE)"]
        for site in subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split():
            if site.rstrip("/").endswith("/debian"):
                # The lock is renewed by what a mirror's indexes say, so nobody on the way may change them.
                return site.rstrip("/").removesuffix("/debian").replace("http://", "https://", 1)
    raise ReleaseError(
        "no mirror of Debian is known: set DEBIAN_MIRROR=https://HOST, below which are debian/ and debian-security/"
    )


def _get(path: str) -> bytes:
    with urllib.request.urlopen(f"{mirror()}/{path}", timeout=60) as answer:
        data: bytes = answer.read()
        return data


def newest() -> list[Package]:
    """Return the newest version of each package, by the mirror's indexes."""
    found: dict[str, tuple[str, Package]] = {}
    for index in _INDEXES:
        archive = index.partition("/")[0]
        for paragraph in lzma.decompress(_get(index)).decode().split("\n\n"):
            fields = dict(
                line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " "
            )
            name = fields.get("Package", "")
            if name not in PACKAGES:
                continue
            package = Package(f"{archive}/{fields['Filename']}", fields["SHA256"])
            if name not in found or _is_newer(fields["Version"], found[name][0]):
                found[name] = fields["Version"], package
    missing = set(PACKAGES) - set(found)
    if missing:
        raise ReleaseError(f"Debian {RELEASE} has no package {', '.join(sorted(missing))}")
    return [found[name][1] for name in PACKAGES]


def _is_newer(version: str, other: str) -> bool:
    return subprocess.run(["dpkg", "--compare-versions", version, "gt", other], check=False).returncode == 0


def main() -> None:
    """Write the lock anew."""
    lines = [f"{package.path} sha256:{package.sha256}" for package in newest()]
    head = f"# Debian packages of the image's base ({RELEASE}, amd64). Renew: python -m tools.release.debian"
    LOCK.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    print(f"{len(lines)} packages in {LOCK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
