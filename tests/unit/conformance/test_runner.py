"""The conformance runner on small hand-made vector files."""

import gzip
import json

import pytest

from tests.conformance import registry
from tests.conformance.__main__ import main
from tests.conformance.differences import differences, paths_of


@pytest.fixture(autouse=True)
def double_checker(monkeypatch):
    """Register a checker for a function of our own, for the length of one test."""
    monkeypatch.setattr(registry, "_REGISTERED", {})
    monkeypatch.setattr(registry, "load_topics", lambda package: [])

    @registry.checks("function", "double")
    def double(case):
        return differences(case["expect"], {"output": 2 * case["input"]})


@pytest.fixture
def vectors(tmp_path):
    def write(*cases, name="double.jsonl"):
        lines = "".join(
            json.dumps({"id": f"c{n}", "function": "double"} | case) + "\n" for n, case in enumerate(cases)
        )
        data = lines.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(tmp_path)

    return write


RIGHT = {"input": 2, "expect": {"output": 4}}
WRONG = {"input": 2, "expect": {"output": 5}}
PANIC = {"input": 2, "expect": {"panic": "nil pointer"}}


def test_right_answers_pass_in_plain_and_gzipped_files(vectors, capsys):
    vectors(RIGHT, RIGHT)
    assert main([vectors(RIGHT, name="more.jsonl.gz")]) == 0
    assert capsys.readouterr().out == "double.jsonl: 2/2\nmore.jsonl.gz: 1/1\n"


def test_a_wrong_answer_fails_the_run_and_is_shown(vectors, capsys):
    assert main([vectors(RIGHT, WRONG)]) == 1
    assert capsys.readouterr().out == ("double.jsonl: 1/2\n  failed 1\n    c1\n      output: want 5, got 4\n")


def test_show_limits_what_is_printed(vectors, capsys):
    assert main([vectors(WRONG, WRONG), "--show", "0"]) == 1
    assert capsys.readouterr().out == "double.jsonl: 0/2\n  failed 2\n"


def test_only_picks_cases_by_a_part_of_their_id(vectors, capsys):
    assert main([vectors(RIGHT, WRONG), "--only", "c0"]) == 0
    assert capsys.readouterr().out == "double.jsonl: 1/1\n"


def test_a_checker_that_raises_is_a_failure_with_its_reason(vectors, capsys):
    assert main([vectors({"input": None, "expect": {}})]) == 1
    assert "raised TypeError" in capsys.readouterr().out


def test_a_few_ruled_cases_are_counted_apart_and_do_not_fail(vectors, capsys):
    assert main([vectors(*[RIGHT] * 60, PANIC)]) == 0
    assert capsys.readouterr().out == "double.jsonl: 60/61\n  ruled 1: upstream panics (1)\n"


def test_rulings_that_cover_two_percent_of_a_file_fail_the_run(vectors, capsys):
    assert main([vectors(*[RIGHT] * 49, PANIC)]) == 1
    assert "too many ruled" in capsys.readouterr().out


def test_a_crash_of_ours_is_not_excused_by_a_crash_of_upstream(vectors, capsys):
    assert main([vectors(*[RIGHT] * 60, {"input": None, "expect": {"panic": "nil pointer"}})]) == 1
    assert "raised TypeError" in capsys.readouterr().out


def test_an_unknown_function_in_a_covered_file_fails_and_is_named(vectors, capsys):
    assert main([vectors(RIGHT, {"function": "triple"})]) == 1
    assert "no checker for: function triple (1)" in capsys.readouterr().out


def test_a_file_without_any_checker_is_not_covered(vectors, capsys):
    assert main([vectors({"function": "triple"})]) == 1
    assert capsys.readouterr().out == "double.jsonl: not covered (1 cases)\n"


def test_a_directory_without_vectors_fails(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert "no *.jsonl" in capsys.readouterr().err


def test_a_line_that_is_not_json_is_named(tmp_path):
    (tmp_path / "bad.jsonl").write_text("{}\n{")
    with pytest.raises(ValueError, match=r"bad\.jsonl:2: this line is not a JSON object"):
        main([str(tmp_path)])


def test_a_checker_bound_to_a_file_wins_over_a_general_one():
    @registry.checks("kind", "sequence")
    def general(case):
        return None

    @registry.checks("kind", "sequence", stem="histogram")
    def histogram(case):
        return None

    assert registry.find({"kind": "sequence"}, "histogram") is histogram
    assert registry.find({"kind": "sequence"}, "behavior") is general
    assert registry.find({"function": "sequence"}, "histogram") is None


@pytest.mark.parametrize(
    ("want", "got", "paths"),
    [
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, {"a[1]"}, id="inside a list"),
        pytest.param({"a": 1}, {}, {"a"}, id="absent on our side"),
        pytest.param({}, {"a": None}, {"a"}, id="null is not absent"),
        pytest.param([1], [1, 2], {"answer"}, id="lists of different length"),
        pytest.param(True, 1, {"answer"}, id="a boolean is not a number"),
        pytest.param(1, 1.0, set(), id="1 and 1.0 are one number"),
    ],
)
def test_differences_name_the_path(want, got, paths):
    assert paths_of(differences(want, got) or "") == paths
