"""The limit of a test: it ends a hang, and not a test that the machine is too busy for."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.watchdog import wall_seconds

HANGING = """
import threading
import pytest
from tests.watchdog import Watchdog

def test_calm(): pass
def test_hangs(): {hang}

if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q", "-p", "no:cacheprovider", "-c", "/dev/null"], plugins=[Watchdog(0.05, 0.01)]))
"""


@pytest.mark.parametrize(
    ("load", "cores", "want"),
    [
        pytest.param(0.0, 2, 400, id="idle"),
        pytest.param(2.0, 2, 400, id="every process has a core"),
        pytest.param(20.0, 2, 4000, id="ten processes for each core"),
        pytest.param(3.0, 1, 1200, id="one core"),
    ],
)
def test_a_busy_machine_gives_a_test_more_time(load, cores, want):
    assert wall_seconds(400, load, cores) == want


@pytest.mark.parametrize(
    "hang", ["threading.Event().wait()", "[None for _ in iter(int, 1)]"], ids=["waits", "computes"]
)
def test_a_test_that_hangs_is_ended_with_its_stack(hang: str, tmp_path: Path):
    script = tmp_path / "test_hanging.py"
    script.write_text(HANGING.replace("{hang}", hang))
    ended = subprocess.run(
        [sys.executable, str(script)], cwd=Path.cwd(), env={"PYTHONPATH": str(Path.cwd()), "PATH": "/usr/bin"},
        capture_output=True, text=True, check=False, timeout=None,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "in test_hangs" in ended.stderr
    assert "in test_calm" not in ended.stderr
