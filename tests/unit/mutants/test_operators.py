"""The edits that `make mutants` plants: each operator where it applies, and nowhere else."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tools.mutants.catalogue import equivalents, is_python, mutants_of
from tools.mutants.catalogue import mutated as mutated_source
from tools.mutants.operators import apply, edits_of
from tools.mutants.warm import live_functions, replace_code


def mutated(source: str, operator: str) -> list[str]:
    """Return every mutant of one operator, as its changed text."""
    original = dedent(source).encode()
    return [
        apply(original, edit).decode().strip() for edit in edits_of(original) if edit.operator == operator
    ]


@pytest.mark.parametrize(
    ("operator", "body", "want"),
    [
        pytest.param("negate", "if a: b()", ["if not (a): b()"], id="condition"),
        pytest.param("negate", "[x for x in y if x]", ["[x for x in y if not (x)]"], id="filter"),
        pytest.param("boundary", "a < b >= c", ["a <= b >= c", "a < b > c"], id="each comparison of a chain"),
        pytest.param("boundary", "a == b", [], id="equality has no boundary"),
        pytest.param("not", "x = not a", ["x = bool(a)"], id="not"),
        pytest.param("and/or", "x = a and b or c", ["x = a or b or c", "x = a and b and c"], id="each and and or"),
        pytest.param("drop condition", "x = a and b", ["x = (a)", "x = (b)"], id="first and last condition"),
        pytest.param("return", "return a", ["return None"], id="nothing instead of a value"),
        pytest.param("return", "return True", ["return False"], id="the opposite truth value"),
        pytest.param("drop call", "await a.b(1)", ["if False: await a.b(1)"], id="awaited call"),
        pytest.param("drop call", "log.info(1)", [], id="log lines stay"),
        pytest.param("drop call", "x = f()", [], id="a call whose value is used stays"),
        pytest.param("drop raise", "raise A(1)", ["if False: raise A(1)"], id="raise"),
        pytest.param("drop assignment", "self.x = 1", ["if False: self.x = 1"], id="state"),
        pytest.param("drop assignment", "x = 1", [], id="the first value of a name stays"),
        pytest.param("arithmetic", "x = a + b", ["x = a - b"], id="sum"),
        pytest.param("arithmetic", "x = 'a' + b", [], id="texts are not added"),
        pytest.param("arithmetic", "x += 1", ["x -= 1"], id="augmented sum"),
        pytest.param("constant", "x = f(30, 0.5, True)", ["x = f(31, 0.5, True)", "x = f(30, 1.0, True)", "x = f(30, 0.5, False)"], id="numbers and truth values"),
        pytest.param("constant", "x: Literal[1] = f'{2}'", [], id="annotations and texts stay"),
        pytest.param("min/max any/all", "x = min(all(a), b)", ["x = max(all(a), b)", "x = min(any(a), b)"], id="min and all"),
        pytest.param("replace()", "x = replace(a, b=1, c=2)", ["x = replace(a, c=2)", "x = replace(a, b=1)"], id="each field"),
    ],
)  # fmt: skip
def test_an_operator_edits_what_it_names(operator: str, body: str, want: list[str]):
    source = f"async def f():\n    {body}\n"
    prefix = "async def f():\n    "
    assert mutated(source, operator) == [prefix + text for text in want]


def test_a_handler_catches_nothing_and_loops_go_on_or_end():
    source = """
        def f():
            for x in y:
                try:
                    continue
                except (A, B) as error:
                    break
    """
    (handler,) = mutated(source, "except")
    assert "except () as error" in handler
    first, second = mutated(source, "continue/break")
    assert (first.count("break"), second.count("continue")) == (2, 2)


def test_a_mutant_is_named_by_its_function_and_says_what_a_definition_binds(tmp_path: Path):
    file = tmp_path / "module.py"
    file.write_text(
        "LIMIT = 3\nclass A:\n    size: int = 4\n    def f(self, x=5):\n        def g():\n            return 6\n"
    )
    found = [
        (mutant.edit.function, mutant.edit.names)
        for mutant in mutants_of(file)
        if mutant.edit.operator == "constant"
    ]
    assert found == [("", ("LIMIT",)), ("", ("size",)), ("", ("f",)), ("A.f.<locals>.g", ("f",))]


def test_edits_of_our_own_sources_are_python():
    for name in ("decide/horizontal/limits.py", "model/quantity.py", "cluster/scale.py"):
        for mutant in mutants_of(Path("src/trimtab") / name):
            assert is_python(mutant), mutant


@pytest.mark.parametrize(
    ("operator", "line", "want"), [("return", 2, (None, 4)), ("arithmetic", 7, (3, 2))], ids=["shorter file", "same lines"]
)  # fmt: skip
def test_living_functions_get_the_code_of_a_mutant(operator: str, line: int, want: object, tmp_path: Path):
    file = tmp_path / "module.py"
    file.write_text("def f(x):\n    return abs(\n        x\n    )\n\ndef g(x):\n    return x + 1\n")
    space: dict[str, Any] = {}
    exec(compile(file.read_bytes(), str(file), "exec"), space)
    functions = live_functions({str(file)})[str(file)]
    places = {(mutant.edit.operator, mutant.edit.line): mutant for mutant in mutants_of(file)}
    replace_code(functions, file, mutated_source(places[operator, line]))
    assert (space["f"](3), space["g"](3)) == want


def test_every_equivalent_mutant_exists_and_has_a_reason():
    known = equivalents(Path("tools/mutants/equivalent.toml"))
    for file in sorted({key[0] for key in known}):
        exists = {mutant.key for mutant in mutants_of(Path(file))}
        assert [key for key in known if key[0] == file and key not in exists] == [], (
            "renew or remove the entry"
        )
    assert all(known.values())
