"""OOM kills that are taken over: their time, the node's capacity, and what the pod's history then needs."""

import pytest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import MINUTE_NS, START_NS, Load, Recommender, member
from trimtab.decide.vertical.input.oom import OOM
from trimtab.decide.vertical.input.usage import Capacity, record_oom
from trimtab.decide.vertical.rules import Rules

GB = 10**9


def killed(ahead_ns=0, used=GB, capacity=None, rules=Rules.TRIMTAB):
    """Record a kill at a time relative to now, and return the error and the container's peak."""
    recommender = Recommender([vpa("base")], rules=rules)
    recommender.observe([member("db-0")])
    recommender.scrape({"db-0": Load(100, GB)})
    now = recommender.now_ns
    node = None if capacity is None else Capacity(64_000, capacity)
    error = record_oom(recommender.state, OOM("shop", "db-0", "app", now + ahead_ns, used), now, node)
    (pod,) = recommender.state.pods.values()
    return error, pod.containers["app"].history.oom_peak


@pytest.mark.parametrize(
    ("ahead_ns", "rules", "is_refused"),
    [
        pytest.param(0, Rules.TRIMTAB, False, id="now"),
        pytest.param(MINUTE_NS, Rules.TRIMTAB, False, id="a minute ahead of the clock"),
        pytest.param(MINUTE_NS + 1, Rules.TRIMTAB, True, id="more than a minute ahead"),
        pytest.param(60 * MINUTE_NS, Rules.VPA_1_8, False, id="upstream accepts any time"),
    ],
)
def test_a_kill_from_the_future_is_refused(ahead_ns, rules, is_refused):
    error, peak = killed(ahead_ns, rules=rules)
    assert error == ("more than a minute ahead of the clock" if is_refused else None)
    assert (peak == 0) is is_refused


@pytest.mark.parametrize(
    ("capacity", "rules", "want"),
    [
        pytest.param(None, Rules.TRIMTAB, 12 * GB // 10, id="no node is known"),
        pytest.param(4 * GB, Rules.TRIMTAB, 12 * GB // 10, id="the node has more"),
        pytest.param(11 * GB // 10, Rules.TRIMTAB, 11 * GB // 10, id="no more than the node has"),
        pytest.param(GB // 2, Rules.TRIMTAB, 0, id="nothing more than was measured already"),
        pytest.param(11 * GB // 10, Rules.VPA_1_8, 12 * GB // 10, id="upstream knows no node"),
    ],
)
def test_a_kill_needs_a_fifth_more_within_the_node(capacity, rules, want):
    assert killed(capacity=capacity, rules=rules) == (None, want)


def test_a_kill_needs_at_least_100_mebibytes_more():
    assert killed(used=1) == (None, 12 * GB // 10), "more was measured than the kill says"
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    small = OOM("shop", "db-0", "app", START_NS, 10**6)
    assert record_oom(recommender.state, small, START_NS) is None
    (pod,) = recommender.state.pods.values()
    assert pod.containers["app"].history.oom_peak == 10**6 + 100 * 2**20
