"""`trimtab simulate` as people type it, on the example of the documentation."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from trimtab.cli import answer

EXAMPLES = Path(__file__).parents[3] / "examples"
TODAY, EAGER = (str(EXAMPLES / name) for name in ("simulate-web.yaml", "simulate-web-eager.yaml"))
DAY = "a-day.csv"


@pytest.fixture(autouse=True)
def a_day_of_the_week(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = (EXAMPLES / "traffic-week.csv").read_text().splitlines()
    Path(DAY).write_text("\n".join([rows[0], *rows[55:100]]) + "\n")


def test_two_candidates_are_compared(capsys):
    assert answer(["simulate", TODAY, EAGER, "--trace", DAY, "--request", "cpu=500m"]) == 0
    out = capsys.readouterr().out
    assert "simulate-web.yaml" in out
    assert "simulate-web-eager.yaml" in out
    assert "cpu: time above target" in out


def test_as_data_with_every_change_and_its_reason(capsys):
    assert (
        answer(["simulate", TODAY, "--trace", DAY, "--request", "cpu=500m", "--changes", "-o", "json"]) == 0
    )
    (found,) = json.loads(capsys.readouterr().out)
    assert len(found["changes"]) == found["ups"] + found["downs"] > 0
    assert found["changes"][0]["reason"] == "cpu resource utilization (percentage of request) above target"


def test_the_records_of_the_changes_can_be_replayed(capsys):
    assert (
        answer(["simulate", TODAY, "--trace", DAY, "--request", "cpu=500m", "--records", "kept.jsonl"]) == 0
    )
    assert answer(["replay", "--quiet", "kept.jsonl"]) == 0
    assert "0 did not" in capsys.readouterr().err


def test_the_picture_stands_by_itself_and_names_the_candidates():
    assert (
        answer(["simulate", TODAY, EAGER, "--trace", DAY, "--request", "cpu=500m", "--svg", "picture.svg"])
        == 0
    )
    drawn = ET.parse("picture.svg").getroot()
    texts = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"needed at target", "simulate-web.yaml", "simulate-web-eager.yaml"} <= set(texts)
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param([TODAY, "--trace", "none.csv"], "'none.csv' does not exist", id="no such trace"),
        pytest.param([TODAY, "--trace", DAY], "add --request cpu=QUANTITY", id="no request"),
        pytest.param([TODAY, "--trace", DAY, "--request", "cpu"], "write NAME=QUANTITY", id="no amount"),
        pytest.param([TODAY, "--trace", DAY, "--request", "cpu=0"], "write NAME=QUANTITY", id="nothing"),
        pytest.param([TODAY, "--trace", TODAY], "the header must name", id="not a trace"),
        pytest.param([DAY, "--trace", DAY], "a manifest must be an object", id="not a manifest"),
        pytest.param(["none.yaml", "--trace", DAY], "not every input could be read", id="no such manifest"),
        pytest.param(
            [TODAY, "--trace", DAY, "--compat", "1.2"], "known are: kubernetes-1.36", id="unknown rules"
        ),
    ],
)
def test_bad_input_is_one_clear_line(arguments, complaint, capsys):
    assert answer(["simulate", *arguments]) in {1, 2}
    err = capsys.readouterr().err
    assert complaint in err
    assert "Traceback" not in err
