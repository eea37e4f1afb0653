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
from trimtab.decide.horizontal.standing import Band, counted_pods, find_standing

TOLERANT = behavior(rules(("Pods", 4, 15), tolerance="0.3"), rules(("Pods", 4, 15), tolerance="0.01"))


def settled(seen):
    """Return the second of two decisions in a row on the same inputs, with what it was made on."""
    chosen, readings = seen.pods, seen.samples
    again, now = later(seen, run(seen), pods=chosen, samples=readings)
    return again, run(again, now)


def bands_of(seen) -> list[Band | None]:
    standing = find_standing(*settled(seen))
    return [] if standing is None else list(standing.bands)


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
    [band] = bands_of(first)
    assert band is not None
    amounts = {one.name: milli for one, milli in zip(chosen, used, strict=True)}
    seen, now = later(first, run(first), pods=chosen, samples=(samples(amounts),))
    if band.covers(used):
        assert run(seen, now).desired == 4


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 12), st.integers(1, 400), st.data())
def test_usage_inside_a_band_beyond_the_tolerance_asks_for_the_same(many, percent, data):
    """At the maximum, at the minimum, or held by a window: the proposal is another number than the replicas."""
    chosen = pods(many)
    first = observe(hpa(cpu(50), low=many, high=many), many, usage_of(chosen, percent), pods=chosen)
    asked = run(first).trace.proposals[0].replicas
    for band in bands_of(first):
        if band is None or int(band.low) + 1 > band.high:
            continue
        total = data.draw(st.integers(int(band.low) + 1, int(band.high)))
        shares = [total // many + (place < total % many) for place in range(many)]
        assert band.covers(shares)
        amounts = {one.name: share for one, share in zip(chosen, shares, strict=True)}
        seen, now = later(first, run(first), pods=chosen, samples=(samples(amounts),))
        assert run(seen, now).trace.proposals[0].replicas == asked


def test_a_negative_value_is_in_no_band():
    """It is rejected, although the sum is what it was."""
    chosen = pods(4)
    [band] = bands_of(observe(hpa(cpu(50)), 4, usage_of(chosen, 50), pods=chosen))
    assert band is not None
    assert band.covers([100, 100, 0, 0])
    assert not band.covers([100, 101, -1, 0])


def test_a_band_is_about_the_pods_that_count():
    """Foreign pods are left out by owner, so their usage neither widens a band nor takes a decision."""
    chosen = (*pods(4, owners=(DEPLOYMENT,)), pod("foreign", owners=()))
    amounts = {one.name: 50 for one in chosen[:4]} | {"foreign": 9_000}
    seen = observe(hpa(cpu(50), selection_strategy="OwnerReference"), 4, samples(amounts), pods=chosen)
    alone = observe(hpa(cpu(50)), 4, usage_of(pods(4), 50), pods=pods(4))
    assert bands_of(seen) == bands_of(alone) != [None]
    assert counted_pods(seen, run(seen)) == chosen[:4]


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
    assert not any(bands_of(seen))
