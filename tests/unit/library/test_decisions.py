"""Decisions are made, explained and repeated from Python as by the programs."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import trimtab
from tests.plugin_packages import install_example
from tests.unit.decide.horizontal.builders import NO_WINDOW, NOW, average, external, hpa, observe, series
from trimtab.cli import answer
from trimtab.decide.horizontal.records.record import dumps
from trimtab.model.hpa.types import ReplicaPolicySpec
from trimtab.model.json import wire

RECORDS = Path(__file__, "../../../data/records/hpas.jsonl").resolve()
LINES = RECORDS.read_bytes().splitlines()


def test_the_text_of_an_explanation_is_that_of_the_command_line(capsys):
    assert answer(["replay", str(RECORDS)]) == 0
    summaries = capsys.readouterr().out.splitlines()
    assert [trimtab.replay(line).summary for line in LINES] == summaries
    for line in LINES:
        replayed = trimtab.replay(line)
        text = str(trimtab.explain(line))
        assert replayed.summary.partition(": ")[2] in text.splitlines()[0]


def test_a_record_that_comes_out_the_same():
    replayed = trimtab.replay(LINES[0].decode())
    assert (replayed.is_same, replayed.difference) == (True, "")
    assert str(replayed) == replayed.summary


def test_a_record_that_comes_out_otherwise():
    record = trimtab.replay(LINES[0]).recorded
    wrong = msgspec.structs.replace(
        record, decision=msgspec.structs.replace(record.decision, desired=record.decision.desired + 1)
    )
    replayed = trimtab.replay(wrong)
    assert not replayed.is_same
    assert replayed.difference.startswith("--- recorded\n+++ decided now\n")
    assert str(replayed) == f"{replayed.difference}\n{replayed.summary}"
    assert repr(replayed).endswith(": different>")


@pytest.mark.parametrize("line", [b"nonsense", b"{}", b'{"version": 99}', ""])
def test_a_text_that_is_no_record_is_refused(line):
    for function in (trimtab.explain, trimtab.replay):
        with pytest.raises(trimtab.RecordError):
            function(line)


@pytest.mark.parametrize("line", LINES)
def test_an_observation_is_decided_as_it_was(line):
    record = trimtab.replay(line).recorded
    now = datetime.fromtimestamp(record.decision.now, UTC)
    decided = trimtab.decide(record.observation, now)
    if record.fate == decided.fate:
        assert dumps(decided) == dumps(record)
    encoded = wire.encode(record.observation)
    for observation in (encoded, encoded.decode(), json.loads(encoded)):
        assert dumps(trimtab.decide(observation, now)) == dumps(decided)


def test_a_decision_can_be_explained():
    record = trimtab.replay(LINES[0]).recorded
    again = trimtab.decide(record.observation, datetime.fromtimestamp(record.decision.now, UTC))
    assert trimtab.explain(again).desired == again.decision.desired


def test_a_wrong_argument_is_named():
    observation = trimtab.replay(LINES[0]).recorded.observation
    with pytest.raises(ValueError, match="has no time zone"):
        trimtab.decide(observation, datetime(2026, 1, 1))  # noqa: DTZ001 - which is what is refused
    with pytest.raises(ValueError, match="hpa"):
        trimtab.decide({}, datetime.now(UTC))


def test_a_policy_that_was_not_called_lowers_nothing_and_is_named(tmp_path, monkeypatch):
    """The policy was left out without a word, and the replicas were lowered."""
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = {"metric": "requests", "steps": [{"above": 0, "pods": 7, "per": 1000}]}
    name = install_example(tmp_path, "step-plan")
    autoscaler = hpa(
        external(average(100), name="requests"),
        high=20,
        replica_policies=(ReplicaPolicySpec(name=name, parameters=plan),),
    )
    seen = observe(autoscaler, 4, series(100), settings=NO_WINDOW)
    alone = trimtab.decide(seen, NOW)
    assert alone.decision.desired == 4
    assert f"replica policy {name} is not loaded: install its package and name it in plugins" in str(
        trimtab.explain(alone)
    )
    assert trimtab.decide(seen, NOW, plugins=[name]).decision.desired == 7
