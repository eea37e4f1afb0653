"""Memory windows, late samples, OOM kills: what a container's samples do to its aggregate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.usage_builders import DAY_NS, HOUR_NS, MINUTE_NS, START_NS
from trimtab.decide.vertical.cluster_state.aggregates import Aggregate, AggregateTable
from trimtab.decide.vertical.cluster_state.containers import ContainerHistory, ContainerTable, UsageRows
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import ContainerResourcePolicy

GB = 10**9


def container(table=None) -> tuple[ContainerHistory, Aggregate]:
    aggregate = Aggregate(table or AggregateTable(block_columns=4))
    history = ContainerHistory(ContainerTable(aggregate.table))
    history.aggregate = aggregate.row
    return history, aggregate


def peaks(aggregate) -> list[float]:
    """Return the filled memory buckets' ends, in GB."""
    ends = aggregate.memory.matrix.buckets.ends
    return [round(float(ends[bucket]) / GB, 1) for bucket in np.flatnonzero(aggregate.memory.weights)]


@pytest.mark.parametrize(
    ("samples", "want"),
    [
        pytest.param([(0, 1), (1, 2), (2, 1.5)], [2.1], id="only the highest peak of a window stays"),
        pytest.param([(0, 1), (25, 2)], [1.0, 2.1], id="the next window has its own peak"),
        pytest.param(
            [(0, 0), (1, 2)], [0.0], id="a window that began with 0 sees no higher peak, as upstream's"
        ),
        pytest.param([(5, 2), (1, 4)], [2.1], id="a sample older than the last is not taken"),
        pytest.param([(5, 1), (5, 2)], [2.1], id="a sample of the same time is"),
    ],
)
def test_memory_windows(samples, want):
    history, aggregate = container()
    for hour, gigabytes in samples:
        history.add_memory(int(gigabytes * GB), START_NS + hour * HOUR_NS)
    assert peaks(aggregate) == want


@pytest.mark.parametrize(
    ("request_bytes", "peak", "want"),
    [
        pytest.param(50_000_000, 0, 154_857_600, id="100 MiB more at least"),
        pytest.param(2 * GB, 0, 2_400_000_000, id="a fifth more if that is more"),
        pytest.param(GB, 3 * GB, 3_600_000_000, id="usage above the request counts"),
    ],
)
def test_an_oom_kill_is_a_sample_of_what_was_needed(request_bytes, peak, want):
    history, _ = container()
    if peak:
        history.add_memory(peak, START_NS)
    assert history.record_oom(START_NS + MINUTE_NS, request_bytes) is None
    assert history.oom_peak == want


def test_f59_a_series_of_oom_kills_stays_within_the_node():
    history, _ = container()
    for minute in range(60):
        request = min(16 * GB, 2 * GB * (minute + 1))
        history.record_oom(START_NS + minute * MINUTE_NS, request, capacity_bytes=16 * GB)
    assert history.oom_peak == 16 * GB


def test_an_oom_kill_from_before_the_last_interval_is_dropped():
    history, _ = container()
    history.add_memory(GB, START_NS + 2 * DAY_NS)
    assert "too old" in (history.record_oom(START_NS, GB) or "")


def test_policies_set_the_oom_bump_and_the_memory_window_per_vpa():
    history, aggregate = container()
    policy = ContainerResourcePolicy(
        oom_bump_up_ratio=Quantity.parse("2"),
        oom_min_bump_up=Quantity.parse("1"),
        memory_aggregation_interval_seconds=3600,
        memory_aggregation_interval_count=2,
    )
    aggregate.apply_policy(policy, per_vpa=True)
    history.record_oom(START_NS, GB)
    assert history.oom_peak == 2 * GB
    assert history.window_end_ns == START_NS + HOUR_NS
    history.add_cpu(100, START_NS)
    assert not aggregate.is_expired(START_NS + HOUR_NS)
    assert aggregate.is_expired(START_NS + 2 * HOUR_NS)


def test_policies_without_the_gate_leave_the_settings_alone():
    history, aggregate = container()
    aggregate.apply_policy(ContainerResourcePolicy(memory_aggregation_interval_seconds=60), per_vpa=False)
    history.add_memory(GB, START_NS)
    assert history.window_end_ns == START_NS + DAY_NS


def test_a_container_without_aggregate_accepts_samples_and_they_go_nowhere():
    history, aggregate = container()
    history.aggregate = -1
    assert history.add_cpu(100, START_NS)
    assert history.add_memory(GB, START_NS)
    assert history.add_memory(2 * GB, START_NS + MINUTE_NS)
    assert history.record_oom(START_NS + MINUTE_NS, 3 * GB) is None
    assert aggregate.is_empty
    assert aggregate.memory.is_empty


def three_containers() -> tuple[ContainerTable, list[ContainerHistory]]:
    table = ContainerTable(AggregateTable(block_columns=4))
    members = [ContainerHistory(table) for _ in range(3)]
    for member in members:
        # Each has an aggregate of its own: what two of them add to one is summed in another order.
        member.aggregate = Aggregate(table.aggregates).row
    return table, members


SAMPLES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-1, 64 * GB), st.integers(0, 24 * 60 * 3)),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40)
@given(SAMPLES)
def test_a_batch_of_containers_ends_as_their_samples_one_by_one(samples):
    (batch_table, batch_members), (_, single_members) = three_containers(), three_containers()
    who, amounts, minutes = (np.array(column) for column in zip(*samples, strict=True))
    usage = UsageRows(who, amounts, START_NS + minutes * MINUTE_NS)
    accepted = batch_table.add_memory(usage).tolist(), batch_table.add_cpu(usage).tolist()
    one_by_one = [
        (
            single_members[place].add_memory(amount, START_NS + minute * MINUTE_NS),
            single_members[place].add_cpu(amount, START_NS + minute * MINUTE_NS),
        )
        for place, amount, minute in samples
    ]
    assert list(zip(*accepted, strict=True)) == one_by_one
    assert [member.max_peak for member in batch_members] == [member.max_peak for member in single_members]
    mine, theirs = batch_table.aggregates, single_members[0].table.aggregates
    rows = np.arange(3)
    assert (mine.memory.gather(rows) == theirs.memory.gather(rows)).all()
    assert (mine.cpu.gather(rows) == theirs.cpu.gather(rows)).all()
    assert (mine.count[rows] == theirs.count[rows]).all()
