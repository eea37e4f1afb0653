"""`K8S` chooses a release of Kubernetes; `TIER` the tests, and the tests what is built."""

import pytest

from tools.peers import build, releases
from tools.real import OPTIONAL_TESTS, optional_programs, tier_of
from tools.release.version import ROOT


@pytest.mark.parametrize(
    ("wanted", "release"),
    [
        pytest.param({}, "1.37.1", id="nothing wanted: the default"),
        pytest.param({"K8S": ""}, "1.37.1", id="make passes an empty value where none was given"),
        pytest.param({"K8S": "1.36"}, "1.36.3", id="a minor version is its pinned patch release"),
        pytest.param({"K8S": "1.35.4"}, "1.35.4", id="a full version is itself"),
        pytest.param({"K8S": "v1.36.1"}, "1.36.1", id="a tag of git is a full version"),
    ],
)
def test_the_chosen_release(wanted, release):
    assert releases.chosen(wanted) == release


@pytest.mark.parametrize("wanted", ["1.35", "latest", "2.0.1", "1.36.3-rc.0", "../1.36.3"])
def test_what_is_no_release_is_refused_with_the_known_ones(wanted):
    with pytest.raises(releases.UnknownReleaseError, match=r"use 1\.37, 1\.36, 1\.34, or a full version"):
        releases.chosen({"K8S": wanted})


def test_the_default_is_the_newest_and_the_oldest_is_known():
    minors = [releases.minor(release) for release in releases.RELEASES.values()]
    assert minors == sorted(minors, reverse=True)
    assert next(iter(releases.RELEASES)) == releases.DEFAULT
    assert list(releases.RELEASES)[-1] == releases.OLDEST


def test_minor_versions_compare_as_numbers(monkeypatch):
    monkeypatch.setenv("K8S", "1.100.0")
    assert not releases.before("1.37")
    monkeypatch.setenv("K8S", "1.36")
    assert releases.before("1.37")
    assert not releases.before("1.36")


@pytest.mark.parametrize(
    ("release", "wanted", "tier"),
    [
        pytest.param("1.37.1", "", "all", id="everything on the default"),
        pytest.param("1.36.3", "", "all", id="everything on the release before"),
        pytest.param("1.36.3", "small", "small", id="CI wants less of the release before"),
        pytest.param("1.34.4", "", "small", id="the oldest has no more than its API server"),
        pytest.param("1.34.4", "all", "all", id="which can be wanted otherwise"),
    ],
)
def test_the_tier_of_a_release(release, wanted, tier):
    assert tier_of(release, wanted) == tier


def test_an_unknown_tier_is_refused():
    with pytest.raises(ValueError, match="TIER=tiny is unknown; use all or small"):
        tier_of("1.37.1", "tiny")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        pytest.param([], ["helm", "kube-state-metrics"], id="all tests need all"),
        pytest.param(["-x", "-k", "helm"], ["helm", "kube-state-metrics"], id="options name no tests"),
        pytest.param(["tests/real/test_convert.py"], [], id="a file that needs none"),
        pytest.param(["tests/real/test_state_metrics.py"], ["kube-state-metrics"], id="a file"),
        pytest.param(
            ["-x", "tests/real/test_state_metrics.py::test_it[a]"], ["kube-state-metrics"], id="one test"
        ),
        pytest.param(["tests/real/install"], ["helm"], id="a folder"),
        pytest.param(
            ["tests/real/test_convert.py", "tests/real"], ["helm", "kube-state-metrics"], id="two paths"
        ),
    ],
)
def test_an_optional_program_is_built_for_the_tests_that_need_it(arguments, wanted, monkeypatch):
    """kube-state-metrics was built for any single file."""
    monkeypatch.chdir(ROOT)
    assert optional_programs(arguments) == wanted


def test_the_tests_of_each_optional_program_are_known():
    """And no other test on the real API server looks for it."""
    assert set(OPTIONAL_TESTS) == set(build.OPTIONAL)
    for name, place in OPTIONAL_TESTS.items():
        users = [path for path in (ROOT / "tests/real").rglob("*.py") if f'"{name}"' in path.read_text()]
        assert users == [ROOT / place]
