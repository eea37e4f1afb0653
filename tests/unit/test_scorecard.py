"""The scorecard counts tests that exist."""

from pathlib import Path

import pytest

from tests.scorecard import HARDENING, rows_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("title", HARDENING)
def test_every_place_of_a_row_holds_tests(title):
    for place in HARDENING[title]:
        path = ROOT / place
        files = [path] if path.suffix else sorted(path.rglob("test_*.py"))
        assert files
        assert all("def test_" in file.read_text(encoding="utf-8") for file in files), place


def test_a_test_is_counted_where_its_file_belongs():
    assert rows_of("tests/fuzz/test_fuzz.py::test_x[http]") == ["fuzz"]
    assert rows_of("tests/unit/model/test_times.py::test_x") == []
