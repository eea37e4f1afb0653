"""Usage inside its band never changes the replicas, so that nobody has to decide to see it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import (
    DEPLOYMENT,
    behavior,
    container_cpu,
    cpu,
    cpu_value,
    external,
    hpa,
    later,
    losing,
    observe,
    pod,
    pods,
    rules,
    run,
    samples,
    series,
    usage_of,
    value,
)
from trimtab.decide.horizontal.records.usage_bands import counted_pods, usage_bands

TOLERANT = behavior(rules(("Pods", 4, 15), tolerance="0.3"), rules(("Pods", 4, 15), tolerance="0.01"))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(0, 160), min_size=4, max_size=4),
    st.sampled_from([cpu(50), cpu(7), cpu_value("50m"), container_cpu("main", 50)]),
    st.sampled_from([None, behavior(), TOLERANT]),
)
def test_usage_inside_its_band_never_scales(used, metric, rates):
    start = {"target": 7} if metric == cpu(7) else {"target": 50}
    chosen = pods(4)
    first = observe(hpa(metric, behavior=rates), 4, usage_of(chosen, start["target"]), pods=chosen)
    decision = run(first)
    [band] = usage_bands(first, decision)
    amounts = {one.name: milli for one, milli in zip(chosen, used, strict=True)}
    seen, now = later(first, decision, pods=chosen, samples=(samples(amounts),))
    if band.low <= sum(used) <= band.high:
        assert run(seen, now).desired == 4


@pytest.mark.parametrize(
    ("used", "is_inside"),
    [(45, False), (46, True), (50, True), (55, True), (56, False)],
)
def test_a_band_is_nearly_as_wide_as_the_tolerance(used, is_inside):
    chosen = pods(4)
    seen = observe(hpa(cpu(50)), 4, usage_of(chosen, 50), pods=chosen)
    [band] = usage_bands(seen, run(seen))
    assert (band.low <= 4 * used <= band.high) is is_inside


def test_a_band_is_about_the_pods_that_count():
    """Foreign pods are left out by owner, so their usage neither widens a band nor takes a decision."""
    chosen = (*pods(4, owners=(DEPLOYMENT,)), pod("foreign", owners=()))
    amounts = {one.name: 50 for one in chosen[:4]} | {"foreign": 9_000}
    seen = observe(hpa(cpu(50), selection_strategy="OwnerReference"), 4, samples(amounts), pods=chosen)
    decision = run(seen)
    alone = observe(hpa(cpu(50)), 4, usage_of(pods(4), 50), pods=pods(4))
    assert usage_bands(seen, decision) == usage_bands(alone, run(alone)) != ()
    assert counted_pods(seen, decision) == chosen[:4]


@pytest.mark.parametrize(
    ("metrics", "readings", "chosen"),
    [
        pytest.param((external(value(5)),), (series(5),), pods(4), id="another kind of metric"),
        pytest.param((cpu(50),), (usage_of(pods(3), 50),), pods(4), id="a pod without a sample"),
        pytest.param((cpu(50),), (usage_of(pods(4), 90),), pods(4), id="a decision that scales"),
        pytest.param((cpu(50),), (), pods(4), id="nothing was read"),
        pytest.param(
            (cpu(50),), (usage_of(pods(4), 50),), (*pods(3), pod("web-4", ready="False")), id="an unready pod"
        ),
        pytest.param((losing(cpu(50), "Ignore"), cpu(50)), (), pods(4), id="a lost metric"),
    ],
)
def test_what_takes_a_decision_has_no_band(metrics, readings, chosen):
    seen = observe(hpa(*metrics, high=20), 4, *readings, pods=chosen)
    assert usage_bands(seen, run(seen)) == ()
