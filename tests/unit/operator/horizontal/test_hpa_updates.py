"""What a newer version of an HPA changes, and what it shares with the older one."""

import json

import msgspec
import pytest

from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.model.hpa.annotations import MEMORY_ANNOTATION
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.operator.horizontal.hpa_cache import HpaCache, stored_memory
from trimtab.operator.horizontal.kinds import OWN_HPAS, to_cache_entry

CREATED = "2026-01-01T00:00:00Z"
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
}


def hpa(version="7", *, generation=1, maximum=10, annotations=None, memory="", conditions=("A", "B")):
    """Return an HPA whose texts are objects of their own, as a decoder makes them."""
    meta = {
        "name": "web",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": version,
        "generation": generation,
        "creationTimestamp": CREATED,
        "labels": {"a": "b"},
        "annotations": annotations or {},
    }
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": maximum,
        "metrics": [CPU],
    }
    current = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 50}}}
    status = {
        "memory": memory,
        "lastScaleTime": CREATED,
        "currentMetrics": [current],
        "conditions": [{"type": kind, "status": "True"} for kind in conditions],
    }
    whole = {"metadata": meta, "spec": spec, "status": status}
    return wire.decode(json.dumps(whole).encode(), HorizontalPodAutoscaler)


class Book:
    """A cache of HPAs that remembers which changes it told."""

    def __init__(self):
        self.told: list[str] = []
        self.cache = HpaCache(
            records=1,
            on_change=lambda state: self.told.append("changed"),
            on_delete=lambda state: self.told.append("deleted"),
        )

    def see(self, new, change=CacheEvent.UPDATED):
        self.cache.event_handler(OWN_HPAS)(Delta(change, new=to_cache_entry(new)))
        return self.cache.named("shop", "web")


def test_equal_parts_of_a_newer_version_are_not_held_twice():
    """Thousands of HPAs are written every 15 s, and most of what comes back is what was there."""
    book = Book()
    before = book.see(hpa()).hpa
    after = book.see(hpa("8")).hpa
    assert after.metadata.resource_version == "8"
    for name in ("name", "namespace", "uid", "creation_timestamp", "labels", "annotations"):
        assert getattr(after.metadata, name) is getattr(before.metadata, name), name
    for name in ("last_scale_time", "current_metrics", "conditions"):
        assert getattr(after.status, name) is getattr(before.status, name), name
    assert after.spec is before.spec
    assert book.told == ["changed"]


def test_of_changed_conditions_the_equal_ones_are_shared():
    book = Book()
    before = book.see(hpa()).hpa.status.conditions
    after = book.see(hpa("8", conditions=("C", "B"))).hpa.status.conditions
    assert [condition.type for condition in after] == ["C", "B"]
    assert after[1] is before[1]


@pytest.mark.parametrize(
    ("new", "is_changed"),
    [
        pytest.param(hpa("8", generation=2, maximum=20), True, id="another spec"),
        pytest.param(hpa("8", generation=0, maximum=20), True, id="another spec without a generation"),
        pytest.param(hpa("8", generation=2), False, id="the same spec in a new generation"),
        pytest.param(hpa("8", generation=0), False, id="the same spec without a generation"),
        pytest.param(hpa("7", generation=2, maximum=20), False, id="the version that is known"),
        pytest.param(hpa("6", generation=2, maximum=20), False, id="an older version"),
    ],
)
def test_only_another_spec_is_a_change(new, is_changed):
    book = Book()
    book.see(hpa())
    state = book.see(new)
    assert book.told == ["changed"] + ["changed"] * is_changed
    assert state.hpa.spec.max_replicas == (20 if is_changed else 10)


@pytest.mark.parametrize(
    ("new", "want"),
    [
        (hpa(), ""),
        (hpa(memory="m"), "m"),
        (hpa(annotations={MEMORY_ANNOTATION: "n"}), "n"),
        (hpa(memory="m", annotations={MEMORY_ANNOTATION: "n"}), "m"),
    ],
)
def test_the_memory_is_read_and_not_kept_in_the_object(new, want):
    assert stored_memory(new) == want
    kept = Book().see(new).hpa
    assert kept.status.memory == ""
    assert MEMORY_ANNOTATION not in kept.metadata.annotations


def test_other_annotations_are_kept():
    kept = Book().see(hpa(annotations={MEMORY_ANNOTATION: "n", "team": "web"})).hpa
    assert kept.metadata.annotations == {"team": "web"}


@pytest.mark.parametrize(("version", "want"), [("8", 20), ("7", 10), ("6", 10)])
def test_our_own_write_counts_if_it_is_newer(version, want):
    book = Book()
    state = book.see(hpa())
    book.cache.note_written(state, hpa(version, generation=2, maximum=20, memory="m"))
    assert state.hpa.spec.max_replicas == want


def test_the_status_of_a_dry_run_is_shown_until_the_object_changes():
    book = Book()
    state = book.see(hpa())
    shown = msgspec.structs.replace(state.hpa.status, desired_replicas=9)
    book.cache.note_dry_run(state, shown)
    assert state.hpa.status.desired_replicas == 9
    assert book.see(hpa("8")).hpa.status.desired_replicas == 0
