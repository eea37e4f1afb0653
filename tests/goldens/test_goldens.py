"""What users see of each decision is what its golden says. Renew with `python -m tests.goldens --renew`."""

import re
from pathlib import Path

import pytest

from tests.goldens import files

REFERENCE = Path(__file__, "../../../docs/reference/events-and-conditions.md").resolve()
WITHOUT_GOLDEN = {
    "HistoryUnavailable": "it needs a Prometheus server, which no lab has",
}
"""Reasons of the reference that no golden shows, each with why."""


@pytest.mark.parametrize("path", sorted(files.TABLE))
def test_users_see_what_the_golden_says(path):
    difference = files.difference(path)
    assert not difference, f"{difference}\nIf this is meant: python -m tests.goldens --renew"


def test_every_file_is_of_a_decision_and_every_name_is_used_once():
    assert files.left_over() == []
    assert len(files.TABLE) == len(files.DECISIONS)


def test_every_reason_of_the_reference_is_in_a_golden():
    reasons = set(re.findall(r"^\| `(\w+)` \|", REFERENCE.read_text(), re.MULTILINE))
    shown: set[str] = set()
    for path in files.TABLE:
        text = (files.FOLDER / path).read_text()
        shown |= set(re.findall(r"\w+", text.partition("\n== conditions")[2]))
    assert reasons - shown == set(WITHOUT_GOLDEN)


def test_a_changed_byte_is_a_difference(tmp_path, monkeypatch):
    path = "horizontal/the-maximum-holds.txt"
    text = (files.FOLDER / path).read_text()
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    (tmp_path / "horizontal").mkdir()
    (tmp_path / path).write_text(text)
    assert files.difference(path) == ""
    (tmp_path / path).write_text(text.replace("recommended size matches", "recommended size watches", 1))
    assert "-AbleToScale True ReadyForNewScale since 15 s: recommended size watches" in files.difference(path)
