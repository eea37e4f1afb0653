"""A sample of the recorded answers, quick enough for every run; `make check` replays all of them."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance import registry
from tests.conformance.runner import VECTORS, report, run_file, vector_files
from tests.conformance.versions import Change, Version, all_versions

EVERY = 10
FILES = vector_files([VECTORS])


@pytest.fixture(scope="module", autouse=True)
def _checkers():
    assert registry.load_topics("tests.conformance") == []


LATER = [version for version in all_versions() if version.changes]
HPA_FILES = [path for path in FILES if path.parent.name == "hpa"]


@pytest.mark.parametrize("path", HPA_FILES, ids=[path.name.partition(".")[0] for path in HPA_FILES])
@pytest.mark.parametrize("version", LATER, ids=lambda version: version.name)
def test_a_sample_is_ours_too_by_the_rules_of_a_later_version(path: Path, version: Version):
    result = run_file(path, every=EVERY, version=version)
    out = io.StringIO()
    report(result, out, show=5)
    assert not result.failures, out.getvalue()


@pytest.mark.parametrize(
    ("version", "change"),
    [pytest.param(version, change, id=change.name) for version in LATER for change in version.changes],
)
def test_a_later_version_needs_each_of_its_changes(version: Version, change: Change):
    """A change that no case needs would hide that our code lacks it, or that upstream does."""
    others = tuple(other for other in version.changes if other is not change)
    without = replace(version, changes=others)
    sampled = {path: 1 if path.name.startswith("controller.") else EVERY for path in HPA_FILES}
    assert any(run_file(path, every=every, version=without).failures for path, every in sampled.items())


@pytest.mark.parametrize("path", FILES, ids=[path.name.partition(".")[0] for path in FILES])
def test_a_sample_of_the_recorded_answers_is_ours_too(path: Path):
    result = run_file(path, every=EVERY)
    out = io.StringIO()
    report(result, out, show=5)
    assert result.total > 5
    assert not result.failures, out.getvalue()
    assert not result.uncovered, out.getvalue()


def test_the_recorded_answers_are_part_of_the_project():
    assert len(FILES) == 15
    assert sorted(folder.name for folder in VECTORS.iterdir() if folder.is_dir()) == ["hpa", "vpa"]
