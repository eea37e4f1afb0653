"""A sample of the recorded answers, quick enough for every run; `make check` replays all of them."""

import io
from pathlib import Path

import pytest

from tests.conformance import registry
from tests.conformance.runner import VECTORS, report, run_file, vector_files

EVERY = 10
FILES = vector_files([VECTORS])


@pytest.fixture(scope="module", autouse=True)
def _checkers():
    assert registry.load_topics("tests.conformance") == []


@pytest.mark.parametrize("path", FILES, ids=[path.name.partition(".")[0] for path in FILES])
def test_a_sample_of_the_recorded_answers_is_ours_too(path: Path):
    result = run_file(path, every=EVERY)
    out = io.StringIO()
    report(result, out, show=5)
    assert result.total > 5
    assert not result.failures, out.getvalue()
    assert not result.uncovered, out.getvalue()


def test_the_recorded_answers_are_part_of_the_project():
    assert len(FILES) == 14
    assert sorted(folder.name for folder in VECTORS.iterdir() if folder.is_dir()) == ["hpa", "vpa"]
