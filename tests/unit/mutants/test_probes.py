"""Which lines a test executes, and which tests a mutant meets first."""

from pathlib import Path
from types import ModuleType

from tools.mutants import line_map
from tools.mutants.__main__ import Run
from tools.mutants.catalogue import mutants_of
from tools.mutants.line_map import LineMap, RecordedTest, Store, load_map, ordered
from tools.mutants.probes import Recorder, blocks_of
from tools.mutants.uses import uses_in

SOURCE = b'''"""Module."""
def f(x):
    """Doc."""
    a = 1
    if x:
        return a
    for y in x or ():
        a += y
    else:
        a = 2
    return a
'''


def executed(argument: object) -> set[int]:
    """Return the lines whose block a call of f executes."""
    recorder = Recorder(Path("/root"))
    module = ModuleType("module")
    path = Path("/root/module.py")
    code = recorder.compile(SOURCE, path)
    recorder.prepare(module, path)
    exec(code, module.__dict__)
    assert recorder.take() == {}
    module.f(argument)
    blocks = set(recorder.take()["module.py"])
    return {line for line, block in blocks_of(SOURCE).by_line.items() if block in blocks and line > 3}


def test_a_probe_per_block_separates_what_ran_from_what_did_not():
    assert executed(argument=True) == {4, 5, 6}
    assert executed(argument=None) == {4, 5, 7, 10, 11}


def test_a_recording_is_valid_until_the_test_or_an_executed_function_changes(tmp_path: Path):
    test, source = tmp_path / "tests/test_a.py", tmp_path / "src/a.py"
    for path in (test, source):
        path.parent.mkdir()
    test.write_text("x = 1\n")
    source.write_text("def f():\n    return 1\n\ndef g():\n    return 2\n")
    blocks = {"src/a.py": [1]}
    tests = {"tests/test_a.py::t": {"seconds": 0.1, "passed": True, "blocks": blocks}}

    def loaded():
        line_map.digest.cache_clear()
        line_map._translation.cache_clear()
        return load_map(Store(tmp_path, tmp_path / "map"), ["tests/test_a.py"])

    assert loaded()[1] == ["tests/test_a.py"]
    Store(tmp_path, tmp_path / "map").save(
        "tests/test_a.py", tests, blocks, {"src/a.py": source.read_bytes()}
    )
    known, stale = loaded()
    assert (stale, set(known.by_block), known.at_import) == ([], {("src/a.py", 1)}, {("src/a.py", 1)})
    source.write_text("def f():\n    if 3:\n        return 3\n    return 1\n\ndef g():\n    return 2\n")
    known, stale = loaded()
    assert (stale, set(known.by_block)) == ([], {("src/a.py", 3)}), "another function grew"
    source.write_text("def f():\n    return 1\n\ndef g():\n    return 3\n")
    assert loaded()[1] == ["tests/test_a.py"], "the executed function changed"
    source.write_text("def f():\n    return 1\n\ndef g():\n    return 2\n")
    assert loaded()[1] == []
    test.write_text("x = 2\n")
    assert loaded()[1] == ["tests/test_a.py"], "the test changed"


def test_a_module_that_a_test_imported_while_it_ran_is_recorded(tmp_path: Path):
    """A KeyError ended the recording of some files alone: no other test had imported a command before."""
    for name, text in {"tests/test_a.py": "", "src/late.py": "def f():\n    return 1\n"}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    store = Store(tmp_path, tmp_path / "map")
    test = {"seconds": 0, "passed": True, "blocks": {"src/late.py": [1]}}
    store.save("tests/test_a.py", {"tests/test_a.py::t": test}, {}, {})
    known, stale = load_map(store, ["tests/test_a.py"])
    assert (stale, set(known.by_block)) == ([], {("src/late.py", 1)})


def test_a_folder_that_recorded_nothing_is_named(tmp_path: Path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_b.py").write_text("")
    store = Store(tmp_path, tmp_path / "map")
    store.save(
        "tests/test_b.py", {"tests/test_b.py::t": {"seconds": 0, "passed": True, "blocks": {}}}, {}, {}
    )
    assert load_map(store, ["tests/test_b.py"])[0].silent_folders == ["tests"]


def test_the_fastest_test_of_each_file_goes_first_within_the_budget():
    tests = [RecordedTest(f"{file}{seconds}", file, seconds) for file in "ab" for seconds in (3, 1, 2)]
    assert [test.name for test in ordered(tests, 9)] == ["a1", "b1", "a2", "b2", "a3"]
    assert [test.name for test in ordered(tests, 8)] == ["a1", "b1", "a2", "b2"]
    assert [test.name for test in ordered(tests, 9, home="b")] == ["b1", "b2", "b3", "a1", "a2"]
    slow = [RecordedTest("slow", "c", 50), *tests]
    assert [test.name for test in ordered(slow, 9)] == ["a1", "b1", "a2", "b2", "a3"]


def test_a_test_file_knows_what_it_imports(tmp_path: Path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "src/trimtab").mkdir(parents=True)
    (tmp_path / "src/trimtab/a.py").write_text("A = 1\n")
    (tmp_path / "tests/test_a.py").write_text("from trimtab.a import A\nimport trimtab.gone\n")
    assert line_map.imported_sources(tmp_path, "tests/test_a.py") == ("src/trimtab/a.py",)


def test_a_test_file_knows_what_it_reaches_through_other_modules(tmp_path: Path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "src/trimtab").mkdir(parents=True)
    (tmp_path / "src/trimtab/a.py").write_text("from trimtab.b import B\n")
    (tmp_path / "src/trimtab/b.py").write_text("import trimtab.a\nB = 1\n")
    (tmp_path / "src/trimtab/c.py").write_text("")
    (tmp_path / "tests/test_a.py").write_text("from trimtab.a import A\n")
    assert line_map.reached_sources(tmp_path, "tests/test_a.py") == {"src/trimtab/a.py", "src/trimtab/b.py"}


def test_a_function_that_runs_at_import_meets_the_tests_of_its_folder(tmp_path: Path, monkeypatch):
    """`declare` makes the fields of the settings at import. No test that reads them was tried."""
    for name, text in {
        "src/trimtab/p/flags.py": "def declare(x):\n    return not x\n",
        "src/trimtab/p/values.py": "from trimtab.p.flags import declare\nVALUE = declare(1)\n",
        "tests/unit/p/test_values.py": "from trimtab.p.values import VALUE\n",
        "tests/unit/p/test_other.py": "",
        "tests/unit/q/test_values.py": "from trimtab.p.values import VALUE\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    names = ["tests/unit/p/test_values.py", "tests/unit/p/test_other.py", "tests/unit/q/test_values.py"]
    known = LineMap(tests=[RecordedTest(f"{name}::t", name, 0.1) for name in names])
    (mutant,) = (
        mutant for mutant in mutants_of(Path("src/trimtab/p/flags.py")) if mutant.edit.operator == "not"
    )
    assert [test.file for test in Run(known, 20, 1).tests_using(mutant)] == ["tests/unit/p/test_values.py"]


def test_a_definition_is_used_by_blocks_and_by_other_definitions(tmp_path: Path):
    file = tmp_path / "m.py"
    file.write_text(
        "A = 1\nB = A + 1\ndef f():\n    return B\ndef g():\n    return A\ndef h():\n    return 3\n"
    )
    lines = blocks_of(file.read_bytes()).by_line
    assert uses_in([file]).blocks_using(("A",)) == {(str(file), lines[4]), (str(file), lines[6])}
