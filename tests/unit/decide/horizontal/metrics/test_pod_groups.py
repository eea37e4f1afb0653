"""Which pods' samples count: every rule at its edge, for CPU and for other metrics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import T, pod
from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.metrics.pods import group_pods, is_initializing, stray_values
from trimtab.decide.horizontal.observation.samples import Sample
from trimtab.decide.horizontal.observation.staleness import ANYTHING_GOES, limits_at
from trimtab.decide.horizontal.rules import HpaSettings, Rules

SETTINGS = HpaSettings(cpu_initialization_period=300, initial_readiness_delay=30)
GROUPS = ("ready", "unready", "missing", "ignored")


def group_of(member, sample=Sample(100, T - 20, 15.0), *, is_cpu=True, limits=ANYTHING_GOES):  # noqa: B008 - frozen
    """Return the group in which a pod lands between two ordinary ones."""
    others = [pod("first"), pod("last")]
    samples = {other.name: Sample(1, T - 20, 15.0) for other in others}
    if sample is not None:
        samples[member.name] = sample
    groups = group_pods([others[0], member, others[1]], samples, T, SETTINGS, is_cpu=is_cpu, limits=limits)
    (found,) = [name for name in GROUPS if member in getattr(groups, name)]
    assert [entry.name for entry in groups.ready if entry is not member] == ["first", "last"]
    assert len(groups.values) == len(groups.ready)
    return found


@pytest.mark.parametrize(
    ("facts", "cpu", "memory"),
    [
        pytest.param({}, "ready", "ready", id="ready for an hour"),
        pytest.param({"is_deleted": True}, "ignored", "ignored", id="being deleted"),
        pytest.param({"phase": "Failed"}, "ignored", "ignored", id="failed"),
        pytest.param({"phase": "Pending"}, "unready", "unready", id="pending"),
        pytest.param({"phase": "Succeeded"}, "ready", "ready", id="succeeded is not special"),
        pytest.param({"ready": ""}, "unready", "ready", id="no condition Ready"),
        pytest.param({"started": None}, "unready", "ready", id="no start time"),
        pytest.param({"ready": "Unknown"}, "ready", "ready", id="readiness unknown"),
        pytest.param({"ready": "False"}, "unready", "ready", id="never ready"),
        pytest.param({"ready": "False", "ready_since": T - 3570}, "ready", "ready", id="was ready 30 s after its start"),
        pytest.param({"ready": "False", "ready_since": T - 3571}, "unready", "ready", id="unready 29 s after its start"),
    ],
)  # fmt: skip
def test_a_pod_counts_by_its_state(facts, cpu, memory):
    member = pod("odd", **facts)
    assert group_of(member) == cpu
    assert group_of(member, is_cpu=False) == memory


@pytest.mark.parametrize(
    ("age", "ready", "since", "stamp", "want"),
    [
        pytest.param(299, "True", 100, 85, True, id="young: the window began before readiness"),
        pytest.param(299, "True", 100, 84, False, id="young: a whole window later"),
        pytest.param(299, "True", 100, 86, True, id="young: the window reaches back before readiness"),
        pytest.param(299, "False", 200, 20, True, id="young and unready"),
        pytest.param(300, "True", 10, 86, False, id="old: the window does not matter"),
        pytest.param(300, "False", 271, 20, True, id="old, unready within 30 s of its start"),
        pytest.param(300, "False", 270, 20, False, id="old, unready at 30 s"),
    ],
)
def test_a_cpu_sample_counts_once_a_whole_window_was_measured(age, ready, since, stamp, want):
    """Times are ages in seconds; the window is 15.5 s where the sample is exactly one window after readiness."""
    member = pod("odd", started=T - age, ready=ready, ready_since=T - since)
    window = 16.0 if stamp == 84 else 15.5
    assert is_initializing(member, Sample(1, T - stamp, window), T, SETTINGS) is want


def test_a_sample_exactly_one_window_after_readiness_counts():
    member = pod("odd", started=T - 60, ready_since=T - 45)
    assert not is_initializing(member, Sample(1, T - 30, 15.0), T, SETTINGS)
    assert is_initializing(member, Sample(1, T - 30, 15.001), T, SETTINGS)


@pytest.mark.parametrize(
    ("sample", "want"),
    [
        pytest.param(Sample(0, T - 120, 15.0), "", id="as old as allowed"),
        pytest.param(Sample(0, T - 121, 15.0), "older than the 120 s allowed", id="older than two minutes"),
        pytest.param(Sample(0, T - 300, 100.0), "", id="three windows old"),
        pytest.param(
            Sample(0, T - 301, 100.0), "older than the 300 s allowed", id="older than three windows"
        ),
        pytest.param(Sample(0, T + 9999, 15.0), "", id="of the future"),
        pytest.param(Sample(-1, T - 20, 15.0), "negative value -0.001", id="negative"),
        pytest.param(Sample(0, NEVER, 15.0), "", id="no date"),
        pytest.param(None, None, id="no sample"),
    ],
)
@pytest.mark.parametrize("is_cpu", [True, False], ids=["cpu", "other metrics"])
def test_a_pod_is_missing_without_a_sample_that_can_be_trusted(sample, want, is_cpu):
    member = pod("odd")
    limits = limits_at(T, HpaSettings(), Rules.TRIMTAB)
    samples = {"odd": sample} if sample is not None else {}
    groups = group_pods([member], samples, T, SETTINGS, is_cpu=is_cpu, limits=limits)
    assert (groups.ready == [member]) is (want == "")
    assert (groups.missing == [member]) is (want != "")
    assert [want in reason for _, reason in groups.rejected] == ([True] if want else [])


def test_upstream_trusts_every_sample_and_a_metric_may_have_its_own_age():
    assert limits_at(T, HpaSettings(), Rules.KUBERNETES_1_36) is ANYTHING_GOES
    assert ANYTHING_GOES.with_max_age(1) is ANYTHING_GOES
    assert ANYTHING_GOES.reject_reason(Sample(-5, T - 10**9, 0.0), {}) == ""
    own = limits_at(T, HpaSettings(), Rules.TRIMTAB).with_max_age(600)
    fresh, stale = Sample(1, T - 600, 15.0), Sample(1, T - 601, 900.0)
    old = own.old_dates([fresh, stale], ())
    assert own.reject_reason(fresh, old) == ""
    assert "older than the 600 s" in own.reject_reason(stale, old)


@given(st.lists(st.sampled_from([True, False]), max_size=6))
def test_samples_of_pods_that_are_not_listed_are_stray(known):
    members = [pod(f"p{place}") for place, is_known in enumerate(known) if is_known]
    samples = {f"p{place}": Sample(place, T, 15.0) for place in range(len(known))}
    assert stray_values(members, samples) == [place for place, is_known in enumerate(known) if not is_known]
