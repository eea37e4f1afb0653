"""Histograms and counters as Prometheus reads them."""

from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from trimtab.operator.prometheus import CacheMetrics, Durations, RequestMetrics, Values, WithoutNames


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


def test_a_counter_beside_a_histogram_counts_its_observations():
    registry = CollectorRegistry()
    durations = Durations(
        "seconds", "Time.", ["kind"], bounds=(1.0,), registry=registry, counter=("steps", "Steps.")
    )
    assert [family.name for family in durations.describe()] == ["steps", "seconds"]
    durations.observe(("a",), 0.5, times=2)
    durations.observe(("a",), 3.0)
    assert lines(registry, "steps_total") == ['steps_total{kind="a"} 3.0']


def test_a_gauge_has_a_sample_for_each_of_its_labels():
    registry = CollectorRegistry()
    values = Values("level", "Level.", ["kind"], registry=registry)
    assert [family.name for family in values.describe()] == ["level"]
    assert lines(registry, "level") == []
    values.by_labels = {("a",): 1.0, ("b",): 2.5}
    assert lines(registry, "level") == ['level{kind="a"} 1.0', 'level{kind="b"} 2.5']


def test_requests_are_counted_by_verb_and_code():
    registry = CollectorRegistry()
    sent = {("patch", 0): 1, ("get", 200): 3}
    client: Any = SimpleNamespace(sender=SimpleNamespace(counts=SimpleNamespace(sent=sent)))
    RequestMetrics(client, registry)
    assert lines(registry, "trimtab_api_requests_total") == [
        'trimtab_api_requests_total{code="200",verb="get"} 3.0',
        'trimtab_api_requests_total{code="0",verb="patch"} 1.0',
    ]


def test_metrics_without_names_add_up_objects_and_keep_the_share_of_those_that_are_gone():
    registry = CollectorRegistry()
    durations = Durations(
        "seconds",
        "Time.",
        ["namespace", "kind"],
        bounds=(1.0,),
        registry=registry,
        counter=("steps", "Steps."),
    )
    level = Values("level", "Level.", ["namespace"], registry=registry)
    total = Values("total_level", "Level.", ["kind"], registry=registry)
    nameless = WithoutNames(registry)
    level.by_labels, total.by_labels = {("shop",): 1.0}, {("a",): 2.0}
    durations.observe(("shop", "a"), 0.5, times=2)
    durations.observe(("mail", "a"), 3.0)
    durations.observe(("mail", "b"), 3.0)
    want = ['steps_total{kind="a"} 3.0', 'steps_total{kind="b"} 1.0']
    assert sorted(lines(nameless, "steps_total")) == want
    assert 'seconds_sum{kind="a"} 4.0' in lines(nameless, "seconds")
    assert 'seconds_bucket{kind="a",le="1.0"} 2.0' in lines(nameless, "seconds")
    assert lines(nameless, "level") == []
    assert lines(nameless, "total_level") == ['total_level{kind="a"} 2.0']
    del durations._counts["shop", "a"], durations._sums["shop", "a"]
    assert sorted(lines(nameless, "steps_total")) == want
    durations.observe(("shop", "a"), 0.5)
    assert 'steps_total{kind="a"} 4.0' in lines(nameless, "steps_total")


def test_a_name_can_be_registered_once():
    registry = CollectorRegistry()
    Durations("seconds", "Time.", ["kind"], bounds=(0.1,), registry=registry)
    assert [family.name for family in registry.collect()] == ["seconds"]


def test_caches_show_what_they_hold_received_and_dropped():
    registry = CollectorRegistry()

    def cache(plural: str, group: str, numbers: tuple[int, int, int]) -> Any:
        return Cache(SimpleNamespace(plural=plural, group=group), *numbers)

    informers: Any = [cache("pods", "", (3, 500, 1)), cache("deployments", "apps", (2, 70, 0))]
    CacheMetrics(informers, registry)
    for name, pods, deployments in (
        ("trimtab_cached_objects", 3, 2),
        ("trimtab_cache_received_bytes_total", 500, 70),
        ("trimtab_cache_dropped_objects_total", 1, 0),
    ):
        assert lines(registry, name) == [
            f'{name}{{resource="pods"}} {pods}.0',
            f'{name}{{resource="deployments.apps"}} {deployments}.0',
        ]


class Cache:
    """A cache with some objects."""

    def __init__(self, resource: Any, objects: int, received: int, dropped: int) -> None:
        self.resource = resource
        self.objects = objects
        self.received = lambda: received
        self.dropped = lambda: dropped

    def __len__(self) -> int:
        return self.objects
