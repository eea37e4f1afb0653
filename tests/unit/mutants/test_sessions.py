"""A session of the mutation run that fails says so, and ends the run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants import __main__ as command
from tools.mutants.__main__ import PartFailedError, run_part

ROOT = Path(__file__).parents[3]


def record(place: Path, *files: str) -> "subprocess.CompletedProcess[str]":
    """Record test files of a folder in a process of their own."""
    job = place / "job.json"
    job.write_text(json.dumps({"map": str(place / "map"), "jobs": 1, "files": files}))
    return subprocess.run(
        [sys.executable, "-m", "tools.mutants.record", str(job)],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_test_file_that_cannot_be_imported_is_named_and_fails_the_recording(tmp_path: Path):
    """The recording ended with status 0, and its only message went nowhere."""
    (tmp_path / "test_good.py").write_text("def test_good(): pass\n")
    (tmp_path / "test_bad.py").write_text("import no_such_module\n")
    done = record(tmp_path, "test_good.py", "test_bad.py")
    assert done.returncode == 1
    assert "test_bad.py: cannot be collected" in done.stderr
    assert "no_such_module" in done.stderr


def test_a_recording_of_good_files_succeeds(tmp_path: Path):
    (tmp_path / "test_good.py").write_text("def test_good(): pass\n")
    (tmp_path / "test_none.py").write_text("")
    assert record(tmp_path, "test_good.py").returncode == 0
    assert record(tmp_path, "test_none.py").returncode == 0


def test_a_session_that_fails_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(PartFailedError, match=r"tools\.mutants\.missing ended with exit status 1"):
        run_part("missing", {}, str(tmp_path))

    def fail(*_: object) -> None:
        raise PartFailedError("tools.mutants.record ended with signal 9")

    monkeypatch.setattr(command, "current_map", fail)
    assert command.main(["--count=1"]) == 1
    assert "mutants: tools.mutants.record ended with signal 9" in capsys.readouterr().err
