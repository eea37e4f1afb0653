"""Debian packages that are unpacked beside the node and not installed: the guest's kernel and busybox, headers of seccomp."""

import shutil
import subprocess
import tempfile
from pathlib import Path


class NoPackageError(Exception):
    """A Debian package is not to be had on this machine; the message says which and why."""


def unpacked(name: str, target: Path) -> Path:
    """Download a package with apt and unpack it into a directory; nothing is installed."""
    if target.exists():
        return target
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NoPackageError(f"{name} comes from Debian's packages, and this machine has no apt-get and dpkg")
    with tempfile.TemporaryDirectory(prefix="trimtab-deb-") as scratch:
        # apt drops to a user of its own, who must be able to write here.
        Path(scratch).chmod(0o777)
        run = subprocess.run(
            ["apt-get", "download", "-q", name], cwd=scratch, capture_output=True, text=True, check=False
        )
        archives = list(Path(scratch).glob("*.deb"))
        if run.returncode or not archives:
            raise NoPackageError(
                f"apt-get download {name} failed: {run.stderr.strip()[-500:]}; try apt-get update first"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(["dpkg", "-x", str(archives[0]), str(partial)], check=True)
        partial.rename(target)
    return target
