"""Histograms and counters as Prometheus reads them."""

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from trimtab.clock import VirtualClock
from trimtab.operator.prometheus import Durations
from trimtab.operator.vertical import metrics as vertical
from trimtab.operator.vertical.metrics import StepTimer


def lines(registry, name):
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if line.startswith(name)]


def test_a_histogram_adds_up_its_buckets():
    registry = CollectorRegistry()
    durations = Durations("seconds", "Time.", ["kind"], bounds=(0.1, 1.0), registry=registry)
    assert lines(registry, "seconds") == []
    for seconds in (0.05, 0.1, 0.5, 3.0):
        durations.observe(("a",), seconds)
    durations.observe(("b",), 0.5, times=3)
    assert lines(registry, "seconds") == [
        'seconds_bucket{kind="a",le="0.1"} 2.0',
        'seconds_bucket{kind="a",le="1.0"} 3.0',
        'seconds_bucket{kind="a",le="+Inf"} 4.0',
        'seconds_count{kind="a"} 4.0',
        'seconds_sum{kind="a"} 3.65',
        'seconds_bucket{kind="b",le="0.1"} 0.0',
        'seconds_bucket{kind="b",le="1.0"} 3.0',
        'seconds_bucket{kind="b",le="+Inf"} 3.0',
        'seconds_count{kind="b"} 3.0',
        'seconds_sum{kind="b"} 1.5',
    ]


def test_a_name_can_be_registered_once():
    registry = CollectorRegistry()
    Durations("seconds", "Time.", ["kind"], bounds=(0.1,), registry=registry)
    assert [family.name for family in registry.collect()] == ["seconds"]


def test_steps_are_measured_from_the_last_one_and_the_total_from_the_start():
    registry, clock = CollectorRegistry(), VirtualClock()
    timer = StepTimer(clock, Histogram("step", "Steps.", ["step"], buckets=(1, 10), registry=registry))
    clock.advance(2)
    timer.step("first")
    clock.advance(3)
    timer.step("second")
    clock.advance(1)
    timer.total()
    sums = set(lines(registry, "step_sum"))
    assert sums == {
        'step_sum{step="first"} 2.0',
        'step_sum{step="second"} 3.0',
        'step_sum{step="total"} 6.0',
    }


def test_the_bounds_of_vertical_histograms():
    assert vertical._LATENCY == (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
    seconds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0]
    assert list(vertical._SECONDS) == seconds
    assert vertical._FAST == (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
