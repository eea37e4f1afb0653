"""What failed is run once more by itself, and only a test that fails twice fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CODE = """
from pathlib import Path

def runs():
    path = Path(__file__).with_name("runs")
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return len(path.read_text())

def test_good():
    pass

def test_other():
    assert runs() >= {passes_in}
"""


@pytest.mark.parametrize(
    ("passes_in", "code", "said"),
    [
        pytest.param(1, 0, "2 passed", id="a run without a failure is not repeated"),
        pytest.param(2, 0, "all of them passed by themselves", id="a test that passes in the second run"),
        pytest.param(3, 1, "1 failed and run once more", id="a test that fails twice"),
    ],
)
def test_only_a_test_that_fails_twice_fails_the_run(tmp_path: Path, passes_in: int, code: int, said: str):
    path = tmp_path / "test_sample.py"
    path.write_text(CODE.format(passes_in=passes_in))
    options = ("-c", "/dev/null", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(path))
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, said in result.stdout) == (code, True), result.stdout
    assert result.stdout.count("test session starts") == (1 if passes_in == 1 else 2)


PROGRAM = """
import sys
from tools import second_run
*options, path = sys.argv[1:]
sys.exit(second_run.run([path], options))
"""
"""As `python -m tools.second_run`, with pytest options that both runs get."""
