"""Aggregates: what a policy sets, what is cleared with the VPA, when one expires, what a checkpoint restores."""

import msgspec
import pytest

from trimtab.decide.vertical.cluster_state.aggregates import (
    SCALED_RESOURCES,
    Aggregate,
    AggregateTable,
    controlled_resources,
    validate_history,
)
from trimtab.model.quantity import Quantity
from trimtab.model.times import ZERO_TIME_NS
from trimtab.model.vpa.types import ContainerResourcePolicy

DAY_NS = 86_400 * 10**9
NOW_NS = 20_000 * DAY_NS


def aggregate(created_ns=NOW_NS):
    return Aggregate(AggregateTable(block_columns=2), created_ns)


def sampled(made, *moments):
    for moment in moments:
        made.table.add_cpu(*(ints(value) for value in (made.row, 100, moment)))
    return made


def ints(value):
    import numpy as np

    return np.array([value], dtype=np.int64)


def test_an_empty_aggregate_expires_eight_days_after_its_creation():
    made = aggregate()
    assert (made.created_ns, made.is_empty) == (NOW_NS, True)
    assert not made.is_expired(NOW_NS + 8 * DAY_NS - 1)
    assert made.is_expired(NOW_NS + 8 * DAY_NS)
    assert aggregate(ZERO_TIME_NS).created_ns == ZERO_TIME_NS


def test_an_aggregate_with_samples_expires_eight_days_after_the_last():
    made = sampled(aggregate(), NOW_NS + 3 * DAY_NS, NOW_NS + DAY_NS)
    assert (made.first_sample_ns, made.last_sample_ns) == (NOW_NS + DAY_NS, NOW_NS + 3 * DAY_NS)
    assert (made.sample_count, made.is_empty) == (2, False)
    assert not made.is_expired(NOW_NS + 11 * DAY_NS - 1)
    assert made.is_expired(NOW_NS + 11 * DAY_NS)


POLICY = ContainerResourcePolicy(
    container_name="app",
    mode="Off",
    controlled_resources=("cpu", "nvidia.com/gpu"),
    oom_bump_up_ratio=Quantity.parse("1.5"),
    oom_min_bump_up=Quantity.parse("200Mi"),
    memory_aggregation_interval_seconds=3600,
    memory_aggregation_interval_count=24,
)


def settings_of(made):
    table, row = made.table, made.row
    return (
        float(table.oom_ratio[row]),
        float(table.oom_min_bump[row]),
        int(table.interval[row]),
        int(table.interval_count[row]),
    )


DEFAULTS = (1.2, 100 * 2.0**20, DAY_NS, 8)
OWN = (1.5, 200 * 2.0**20, 3600 * 10**9, 24)


@pytest.mark.parametrize(("per_vpa", "want"), [(True, OWN), (False, DEFAULTS)], ids=["gate on", "gate off"])
def test_a_policy_sets_oom_and_interval_behind_its_gate(per_vpa, want):
    made = aggregate()
    assert settings_of(made) == DEFAULTS
    made.apply_policy(POLICY, per_vpa=per_vpa)
    assert (made.policy, made.scaling_mode, made.controlled_resources) == (POLICY, "Off", ("cpu",))
    assert settings_of(made) == want
    made.apply_policy(None, per_vpa=per_vpa)
    assert (made.policy, made.scaling_mode, made.controlled_resources) == (None, "Auto", SCALED_RESOURCES)
    assert settings_of(made) == want


@pytest.mark.parametrize(
    "field", [name for name in POLICY.__struct_fields__ if name.startswith(("oom_", "memory_agg"))]
)
def test_each_setting_of_a_policy_is_its_own(field):
    made = aggregate()
    made.apply_policy(ContainerResourcePolicy(**{field: getattr(POLICY, field)}), per_vpa=True)
    changed = [got != default for got, default in zip(settings_of(made), DEFAULTS, strict=True)]
    assert sum(changed) == 1
    order = ("oom_bump_up_ratio", "oom_min_bump_up", "memory_aggregation_interval_seconds", "memory_aggregation_interval_count")  # fmt: skip
    assert order[changed.index(True)] == field


def test_an_interval_of_its_own_changes_when_an_aggregate_expires():
    made = aggregate()
    made.apply_policy(POLICY, per_vpa=True)
    assert not made.is_expired(NOW_NS + DAY_NS - 1)
    assert made.is_expired(NOW_NS + DAY_NS)


def test_an_aggregate_forgets_everything_of_its_vpa():
    made = aggregate()
    fresh = aggregate()
    made.apply_policy(POLICY, per_vpa=False)
    made.is_under_vpa, made.update_mode = True, "Recreate"
    made.last_recommendation = {"cpu": Quantity.parse("1")}
    made.mark_not_autoscaled()
    names = (
        "is_under_vpa",
        "update_mode",
        "scaling_mode",
        "controlled_resources",
        "last_recommendation",
        "policy",
    )
    for name in names:
        assert getattr(made, name) == getattr(fresh, name), name
    assert made.is_under_vpa is False


@pytest.mark.parametrize(
    ("listed", "want"),
    [
        pytest.param(None, ("cpu", "memory"), id="both by default"),
        pytest.param((), (), id="none"),
        pytest.param(("memory",), ("memory",), id="one"),
        pytest.param(("gpu", "memory", "cpu"), ("memory", "cpu"), id="what cannot be scaled is left out"),
    ],
)
def test_controlled_resources(listed, want):
    assert controlled_resources(ContainerResourcePolicy(controlled_resources=listed)) == want
    assert controlled_resources(None) == ("cpu", "memory")


def test_a_checkpoint_restores_counts_and_times_or_changes_nothing():
    source = sampled(aggregate(), NOW_NS, NOW_NS + DAY_NS)
    saved = source.save(NOW_NS)
    loaded = aggregate()
    assert loaded.load(saved) is None
    assert (loaded.sample_count, loaded.first_sample_ns, loaded.last_sample_ns) == (
        2,
        NOW_NS,
        NOW_NS + DAY_NS,
    )
    assert loaded.cpu.percentile(0.9) == source.cpu.percentile(0.9) > 0
    for wrong in (
        msgspec.structs.replace(saved, version="v2"),
        msgspec.structs.replace(saved, total_samples_count=-1),
    ):
        untouched = aggregate()
        assert untouched.load(wrong) == validate_history(wrong) != ""
        assert untouched.is_empty
    assert validate_history(msgspec.structs.replace(saved, total_samples_count=0)) is None


@pytest.mark.parametrize("order", [1, -1], ids=["older into newer", "newer into older"])
def test_merging_adds_samples_and_widens_the_span(order):
    table = AggregateTable(block_columns=4)
    pair = [
        sampled(Aggregate(table), NOW_NS),
        sampled(Aggregate(table), NOW_NS + DAY_NS, NOW_NS + 2 * DAY_NS),
    ]
    into, other = pair[::order]
    into.merge(other)
    assert (into.sample_count, into.first_sample_ns, into.last_sample_ns) == (3, NOW_NS, NOW_NS + 2 * DAY_NS)
    empty = Aggregate(table)
    into.merge(empty)
    assert (into.sample_count, into.first_sample_ns) == (3, NOW_NS)
    empty.merge(into)
    assert (empty.sample_count, empty.first_sample_ns) == (3, NOW_NS)
