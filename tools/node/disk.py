"""The disk that a node boots from: busybox, the programs of a node, and one image. It is made without root."""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.node import oci, packages, programs
from tools.peers import build

GUEST = Path(__file__).with_name("guest")
"""Files of the guest as they are on its disk."""

_WIDE_REGISTERS = Path(__file__).with_name("wide_registers.c")

LOAD_IMAGE = "localhost/load:1"
"""The image of all containers in the tests. Without arguments its program is the sandbox of a pod."""

_MODULES = ("overlay", "bridge", "veth", "br_netfilter")
_SIZE = "4G"
_FOLDERS = (
    "bin", "dev", "etc/cni/net.d", "etc/kubernetes", "images", "lib/modules", "mnt", "opt/cni/bin", "proc", "root", "run",
    "sbin", "sys", "tmp", "usr/bin", "usr/local/bin", "usr/sbin", "var/lib", "var/log/pods", "www/cgi-bin",
)  # fmt: skip
_CNI_PLUGINS = ("bridge", "host-local", "loopback")


@dataclass(frozen=True, slots=True)
class Boot:
    """What a guest starts from."""

    kernel: Path
    preload: Path
    """A library that the kernel, which is a process, is started with."""
    disk: Path


def ensure() -> Boot:
    """Return the kernel and the disk of a node; make what is missing."""
    found = programs.ensure()
    folder = build.binaries() / f"node-disk-{_digest(found)}"
    boot = Boot(folder / "linux.uml", folder / "wide_registers.so", folder / "disk.ext4")
    with build.locked(boot.disk):
        if not boot.disk.exists():
            print("making the disk of the node ...", flush=True)
            _make(boot, found)
    return boot


def _digest(found: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for path in (
        Path(__file__),
        Path(oci.__file__),
        _WIDE_REGISTERS,
        *sorted(path for path in GUEST.rglob("*") if path.is_file()),
    ):
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(repr(sorted(map(str, found.values()))).encode())
    return digest.hexdigest()[:12]


def _make(boot: Boot, found: Mapping[str, Path]) -> None:
    uml = packages.unpacked("user-mode-linux", boot.disk.parent / "user-mode-linux")
    busybox = packages.unpacked("busybox-static", boot.disk.parent / "busybox-static") / "bin" / "busybox"
    shutil.copy(uml / "usr/bin/linux.uml", boot.kernel)
    compiling = ["gcc", "-O2", "-Wall", "-shared", "-fPIC", "-o", str(boot.preload), str(_WIDE_REGISTERS)]
    subprocess.run(compiling, check=True, capture_output=True)
    with tempfile.TemporaryDirectory(prefix="trimtab-disk-") as scratch:
        root = Path(scratch)
        for folder in _FOLDERS:
            (root / folder).mkdir(parents=True, exist_ok=True)
        _add_busybox(root, busybox)
        for name, program in found.items():
            place = "opt/cni/bin" if name in _CNI_PLUGINS else "usr/local/bin"
            shutil.copy(program, root / place / name)
        oci.write_images([oci.Image(LOAD_IMAGE, {"load": found["load"]})], root / "images" / "load.tar")
        shutil.copytree(GUEST, root, dirs_exist_ok=True)
        _add_modules(root, uml / "usr/lib/uml/modules")
        for script in (*(root / "etc").glob("[rt][cue]*"), *(root / "www/cgi-bin").iterdir()):
            if script.is_file():
                script.chmod(0o755)
        partial = boot.disk.with_name(".disk.partial")
        subprocess.run(
            ["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(root), "-O", "^has_journal",
             "-E", "lazy_itable_init=1,lazy_journal_init=1", str(partial), _SIZE],
            check=True, capture_output=True,
        )  # fmt: skip
        partial.rename(boot.disk)


def _add_busybox(root: Path, busybox: Path) -> None:
    """Add busybox with a link for each of its commands; Debian's has no `--install`."""
    shutil.copy(busybox, root / "bin" / "busybox")
    listed = subprocess.run([str(busybox), "--list"], capture_output=True, text=True, check=True).stdout
    for command in listed.split():
        if command != "busybox":
            (root / "bin" / command).symlink_to("busybox")
    (root / "sbin" / "init").symlink_to("../bin/busybox")


def _add_modules(root: Path, tree: Path) -> None:
    """Add the kernel modules that containers need, with the order in which to load them."""
    (versioned,) = tree.iterdir()
    target = root / "lib" / "modules" / versioned.name
    target.mkdir(parents=True)
    files = {path.stem.replace("-", "_"): path for path in versioned.rglob("*.ko")}
    order = list(dict.fromkeys(module for name in _MODULES for module in _with_needs(name, files)))
    for module in order:
        shutil.copy(module, target)
    (target / "order").write_text("".join(f"{module.name}\n" for module in order))


def _with_needs(name: str, files: Mapping[str, Path]) -> Iterator[Path]:
    """Yield the modules that a module needs, then itself; those that are built in have no file."""
    path = files.get(name.replace("-", "_"))
    if path is None:
        return
    for needed in re.findall(rb"\0depends=([^\0]*)\0", path.read_bytes()):
        for other in filter(None, needed.decode().split(",")):
            yield from _with_needs(other, files)
    yield path
