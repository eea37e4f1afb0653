"""The examples are short, and their own tests pass."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin_packages import EXAMPLES, install_example, project_modules
from trimtab.plugins.registry import load_plugins

NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml"))
LONGEST = 40


def lines_of_code(path: Path) -> int:
    """Count lines without docstrings, comments and blank lines."""
    tree = ast.parse(path.read_text())
    counted: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            is_block = isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.With | ast.For | ast.If
            )
            last = node.body[0].lineno - 1 if is_block else node.end_lineno  # type: ignore[attr-defined]
            counted.update(range(node.lineno, max(last or 0, node.lineno) + 1))
    return len(counted)


@pytest.mark.parametrize("example", NAMES)
def test_an_example_has_at_most_forty_lines_of_code(example: str) -> None:
    assert sum(map(lines_of_code, project_modules(example))) <= LONGEST


@pytest.mark.parametrize("example", NAMES)
def test_the_tests_of_an_example_pass(example: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-c", os.devnull,
         f"--rootdir={EXAMPLES / example}", "."],
        cwd=EXAMPLES / example, env={**os.environ, "PYTHONPATH": str(EXAMPLES / example)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("example", NAMES)
def test_an_example_is_found_by_its_entry_point(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    name = install_example(tmp_path, example)
    (plugin,) = load_plugins([name])
    assert (plugin.name, plugin.version) == (name, "1.0.0")
