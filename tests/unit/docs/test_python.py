"""The notebook page runs from its first cell to its last, and shows what its cells return."""

import ast
import json
import re
from pathlib import Path

import pytest

import trimtab

for extra in ("matplotlib", "pandas"):
    pytest.importorskip(extra, reason=f"the extra `notebook` is not installed ({extra}): make .venv/.dev")

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
CELL = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
CELLS = CELL.findall(PAGE)


class Printer:
    """Keeps the text of `_repr_pretty_`, as a notebook does."""

    def __init__(self):
        self.shown = ""

    def text(self, text):
        self.shown += text


def shown(value):
    """Return the text that a notebook shows for the value of a cell."""
    printer = Printer()
    if hasattr(value, "_repr_pretty_"):
        value._repr_pretty_(printer, False)
    else:
        printer.text(repr(value))
    return "\n".join(line.rstrip() for line in printer.shown.splitlines())


def run(code, names):
    """Run a cell and return the value of its last expression."""
    body = ast.parse(code).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """Run all cells in an empty directory beside the examples. Return the names and what each cell shows."""
    directory = tmp_path_factory.mktemp("notebook")
    (directory / "examples").symlink_to(ROOT / "examples")
    names: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setenv("MPLBACKEND", "Agg")
        values = [run(code, names) for code, _ in CELLS]
    return names, values, directory


def test_the_page_has_ten_cells():
    assert len(CELLS) == 10


@pytest.mark.parametrize("number", [number for number, (_, text) in enumerate(CELLS) if text])
def test_a_cell_shows_what_the_page_shows(number, notebook):
    assert f"{shown(notebook[1][number])}\n" == CELLS[number][1]


def test_every_candidate_is_plotted_by_its_name(notebook):
    axes = notebook[0]["axes"]
    assert [text.get_text() for text in axes.texts] == list(notebook[0]["candidates"])


def test_the_patch_leads_to_the_best_candidate(notebook):
    names, _, directory = notebook
    patch = json.loads((directory / "patch.json").read_text())
    assert patch["spec"].keys() == {"metrics"}
    patched = names["hpa"].with_fields({"spec.metrics": patch["spec"]["metrics"]})
    assert patched.data == names["best"].data != names["hpa"].data


def test_the_call_to_prometheus_has_the_parameters_of_the_library():
    (block,) = re.findall(r"^```py\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (call,) = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)]
    asked: list[dict[str, str]] = []
    names = {"trimtab": type("Stand-in", (), {"Trace": trimtab.Trace})}

    async def record(_clock, _address, queries, _wanted, _on_progress):
        asked.append(queries)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimtab.library.prometheus.record_load", record)
        exec(block, names)
    assert ast.unparse(call.func) == "trimtab.Trace.from_prometheus"
    assert [list(columns) for columns in asked] == [["cpu"]]
