"""Build a release into dist/: `make release VERSION=0.1.0`.

Sets the version, closes the changelog, and builds wheel, sdist, chart, image, bills of materials, notes and checksums. Nothing is
published. The same version of the same tree gives the same bytes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from tools.release import debian
from tools.release.archives import Entry, compressed, digest, tar
from tools.release.image import write_image
from tools.release.version import CHANGELOG, ROOT, ReleaseError, close_changelog, epoch, notes, set_version

DIST = ROOT / "dist"
_CHANGED = (
    "release: the version and the changelog of this clone are changed: commit them to publish (docs/releasing.md), or undo "
    "them after a trial (git diff shows them)"
)


def main() -> None:
    """Build everything; exit with 1 if a part cannot be built."""
    parser = argparse.ArgumentParser(prog="make release")
    parser.add_argument("version")
    parser.add_argument(
        "--date", default=datetime.now(UTC).strftime("%Y-%m-%d"), help="the date in the changelog"
    )
    parser.add_argument("--no-image", action="store_true", help="build all but the image")
    arguments = parser.parse_args()
    try:
        sys.exit(build(arguments.version, arguments.date, with_image=not arguments.no_image))
    except ReleaseError as error:
        sys.exit(f"release: {error}")


def build(version: str, date: str, *, with_image: bool) -> int:
    """Build a version. Return 1 if only the image could not be built."""
    _say(f"version {version} and its changelog")
    set_version(version)
    CHANGELOG.write_text(
        close_changelog(CHANGELOG.read_text(encoding="utf-8"), version, date), encoding="utf-8"
    )
    seconds = epoch(CHANGELOG.read_text(encoding="utf-8"), version)
    _say("chart and reference pages")
    for module in ("tools.chart", "tools.reference"):
        _run(sys.executable, "-m", module)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    _say("wheel and sdist")
    _python(seconds)
    _say("bills of materials and notes")
    _bills(version)
    (DIST / "notes.md").write_text(notes(CHANGELOG.read_text(encoding="utf-8"), version), encoding="utf-8")
    failed = 0
    if with_image:
        _say("image")
        failed = _image(version, seconds)
    _say("packed chart")
    _chart(version, seconds)
    _say("checksums")
    _checksums()
    print(_CHANGED, file=sys.stderr)
    return failed


def _say(step: str) -> None:
    """Print the step that begins, because all of them together take about a minute."""
    print(f"release: {step} ...", file=sys.stderr, flush=True)


def _python(seconds: int) -> None:
    uv = str(ROOT / ".tools" / "bin" / "uv")
    _run(
        uv, "build", "-q", "--out-dir", str(DIST), "--python", sys.executable,
        "--build-constraint", str(ROOT / "requirements" / "build.lock"), "--require-hashes", str(ROOT),
        seconds=seconds,
    )  # fmt: skip
    (DIST / ".gitignore").unlink(missing_ok=True)


def _chart(version: str, seconds: int) -> None:
    """Write the chart as `helm package` does, with one time for all files.

    With TRIMTAB_IMAGE the chart names the image by that repository and its digest, with TRIMTAB_REPOSITORY_URL its home.
    """
    root = ROOT / "charts" / "trimtab"
    ignored = set((root / ".helmignore").read_text(encoding="utf-8").split())
    entries = [
        Entry(f"trimtab/{path.relative_to(root)}", _published(path, version))
        for path in root.rglob("*")
        if path.is_file() and path.name not in ignored
    ]
    (DIST / f"trimtab-{version}.tgz").write_bytes(compressed(tar(entries, seconds)))


def _published(path: Path, version: str) -> bytes:
    text = path.read_text(encoding="utf-8")
    image, home = os.environ.get("TRIMTAB_IMAGE"), os.environ.get("TRIMTAB_REPOSITORY_URL")
    if path.name == "values.yaml" and image:
        text = _replaced(text, "  repository: trimtab\n", f"  repository: {image}\n")
        digest_file = DIST / "image.digest"
        if digest_file.exists():
            text = _replaced(
                text, "  digest: ''\n", f"  digest: {digest_file.read_text(encoding='utf-8').strip()}\n"
            )
    if path.name == "Chart.yaml" and home:
        (icon,) = (line for line in text.splitlines() if line.startswith("icon: "))
        places = f"home: {home}\nsources:\n- {home}\nicon: {home}/raw/v{version}/charts/trimtab/icon.svg"
        text = _replaced(text, icon, places)
    return text.encode()


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ReleaseError(f"the chart has {text.count(old)} places for {new.strip()!r}, not one")
    return text.replace(old, new)


def _bills(version: str) -> None:
    bill = json.loads(_run(sys.executable, "-m", "tools.sbom"))
    _write_json(f"trimtab-{version}.cdx.json", bill)
    packages = debian.read_lock(debian.LOCK.read_text(encoding="utf-8"))
    bill["components"] += [
        {
            "type": "library",
            "bom-ref": f"pkg:deb/debian/{package.name}@{package.version}?arch=amd64",
            "name": package.name,
            "version": package.version,
            "purl": f"pkg:deb/debian/{package.name}@{package.version}?arch=amd64&distro={debian.RELEASE}",
            "hashes": [{"alg": "SHA-256", "content": package.sha256}],
        }
        for package in packages
    ]
    bill["metadata"]["component"]["type"] = "container"
    _write_json(f"trimtab-{version}-image.cdx.json", bill)


def _write_json(name: str, value: object) -> None:
    (DIST / name).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def _image(version: str, seconds: int) -> int:
    (wheel,) = DIST.glob("*.whl")
    try:
        found = write_image(DIST / f"trimtab-{version}-image-amd64.oci.tar", wheel, version, seconds)
    except ReleaseError as error:
        print(f"release: the image is NOT built: {error}", file=sys.stderr)
        return 1
    (DIST / "image.digest").write_text(found + "\n", encoding="utf-8")
    return 0


def _checksums() -> None:
    lines = [
        f"{digest(path.read_bytes())}  {path.name}\n"
        for path in sorted(DIST.iterdir())
        if path.name != "SHA256SUMS"
    ]
    (DIST / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    print("".join(lines), end="")


def _run(*command: str, seconds: int = 0) -> str:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(
            f"{Path(command[0]).name} {' '.join(command[1:3])} failed: {done.stderr.strip()[-2000:]}"
        )
    return done.stdout


if __name__ == "__main__":
    main()
