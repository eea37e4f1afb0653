"""What goes into an image is pinned, hashed, and listed."""

import re
import tomllib
from pathlib import Path

import pytest

from tools.sbom import LOCK, bill

ROOT = Path(__file__).parents[3]
LOCKS = [ROOT / "requirements" / name for name in ("run.lock", "build.lock")]


def test_the_bill_of_materials_lists_what_the_lock_pins():
    lines = [
        line for line in LOCK.read_text().splitlines() if "==" in line and not line.startswith((" ", "#"))
    ]
    components = bill(LOCK.read_text())["components"]
    assert [f"{one['name']}=={one['version']}" for one in components] == [
        re.split(r"[ ;\\]", line)[0] for line in lines
    ]
    assert all(one["externalReferences"] for one in components)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_requirement_is_pinned_with_hashes(lock):
    entries = re.split(r"\n(?=\S)", lock.read_text().strip())
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []


def test_whatever_builds_the_wheel_is_locked_too():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {re.split(r"[<>=]", name)[0] for name in project["build-system"]["requires"]}
    assert wanted <= {one["name"] for one in bill(LOCKS[1].read_text())["components"]}


def test_every_base_image_is_named_by_a_digest():
    """A tag moves. The digest is an argument without a default, so that a build without one fails."""
    steps = (ROOT / "Dockerfile").read_text().splitlines()
    bases = [step.split()[1] for step in steps if step.startswith("FROM ")]
    assert set(bases) == {"python:3.11-slim@${PYTHON_DIGEST}"}
    assert "ARG PYTHON_DIGEST" in steps[: steps.index(f"FROM {bases[0]} AS build")]
    assert not [step for step in steps if step.startswith("ARG PYTHON_DIGEST=")]


def test_the_image_installs_nothing_without_a_hash_and_does_not_run_as_root():
    steps = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    installs = [step for step in steps if "pip install" in step]
    assert installs
    # Our own wheel comes from the stage before: no index is asked for it.
    assert all("--require-hashes" in step or "--no-index" in step for step in installs)
    users = [step for step in steps if step.startswith("USER ")]
    assert users == ["USER 65532:65532"]


def test_the_image_has_bytecode_that_is_not_checked():
    """Each start compiled every module again, because nothing can be written when the image runs."""
    steps = (ROOT / "Dockerfile").read_text().splitlines()
    compiling = [step for step in steps if "-m compileall" in step]
    assert [step.split()[-1] for step in compiling] == ["/app/lib", "/usr/local/lib/python3.11"]
    assert all("--invalidation-mode unchecked-hash" in step for step in compiling)
