"""The book of HPAs: each is kept with the defaults that an API server fills in, and filled in only where one did not."""

import json

import msgspec
import pytest

from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.model import hpa as hpa_rules
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS, UndecodedHpa, to_cache_entry

POLICIES = [{"type": "Percent", "value": 900, "periodSeconds": 1}]
UP = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": POLICIES}
DOWN = {"selectPolicy": "Min", "policies": POLICIES}
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
}
WHOLE: dict[str, dict[str, object]] = {
    "no behavior": {"minReplicas": 1, "metrics": [CPU]},
    "both directions": {"minReplicas": 1, "metrics": [CPU], "behavior": {"scaleUp": UP, "scaleDown": DOWN}},
}
PARTS: dict[str, dict[str, object]] = {
    "nothing": {},
    "no metrics": {"minReplicas": 2},
    "one direction": {"minReplicas": 1, "metrics": [CPU], "behavior": {"scaleUp": UP}},
    "no window to grow in": {
        "minReplicas": 1,
        "metrics": [CPU],
        "behavior": {"scaleUp": DOWN, "scaleDown": DOWN},
    },
    "no policies": {
        "minReplicas": 1,
        "metrics": [CPU],
        "behavior": {"scaleUp": UP, "scaleDown": {"selectPolicy": "Disabled"}},
    },
    "no choice among policies": {
        "minReplicas": 1,
        "metrics": [CPU],
        "behavior": {"scaleUp": UP, "scaleDown": {"policies": POLICIES}},
    },
}


def seen(spec: dict[str, object]) -> HorizontalPodAutoscaler:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7"}
    whole = {"metadata": meta, "spec": {"scaleTargetRef": target, "maxReplicas": 10, **spec}}
    return wire.convert(whole, HorizontalPodAutoscaler)


def kept(hpa: HorizontalPodAutoscaler) -> HpaState:
    book = HpaCache(records=1, on_change=lambda _: None, on_delete=lambda _: None)
    book.event_handler(NATIVE_HPAS)(Delta(CacheEvent.ADDED, new=to_cache_entry(hpa)))
    found = book.named("shop", "web")
    assert found is not None
    return found


@pytest.mark.parametrize("name", [*WHOLE, *PARTS])
def test_an_hpa_is_kept_as_the_api_server_completes_it(name):
    hpa = seen((WHOLE | PARTS)[name])
    defaulted = wire.convert(hpa_rules.default(hpa), HorizontalPodAutoscaler)
    assert kept(hpa).hpa.spec == defaulted.spec


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_complete_is_not_completed_again(name, monkeypatch):
    """Completing takes 0.2 ms, and a cluster's own HPAs are complete: it was a fifth of the time to the first decision."""
    monkeypatch.setattr(hpa_rules, "default", None)
    hpa = seen(WHOLE[name])
    assert kept(hpa).hpa.spec is hpa.spec


def test_equal_conditions_of_hpas_share_their_texts():
    """A status has four conditions with 300 bytes of text each, and nearly all HPAs have the same."""

    def with_message(uid: str, version: str, message: str) -> HorizontalPodAutoscaler:
        condition = {
            "type": "ScalingActive",
            "status": "True",
            "reason": "ValidMetricFound",
            "message": message,
        }
        meta = {"name": f"web-{uid}", "namespace": "shop", "uid": uid, "resourceVersion": version}
        spec = {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "maxReplicas": 10,
            **WHOLE["no behavior"],
        }
        text = json.dumps({"metadata": meta, "spec": spec, "status": {"conditions": [condition]}})
        return wire.decode(text.encode(), HorizontalPodAutoscaler)

    book = HpaCache(records=1, on_change=lambda _: None, on_delete=lambda _: None)
    handle = book.event_handler(NATIVE_HPAS)
    for version, message in (("7", "found"), ("8", "found again")):
        for uid in ("1", "2"):
            hpa = with_message(uid, version, message)
            handle(Delta(CacheEvent.UPDATED, new=to_cache_entry(hpa)))
        first, second = (hpa_state.hpa.status.conditions[0] for hpa_state in book)
        assert first == second
        assert first.message == message
        for field in ("type", "status", "reason", "message"):
            assert getattr(first, field) is getattr(second, field)


def test_the_cache_does_not_keep_what_the_book_has():
    """It kept the echo of every write: 5 KB for each HPA."""
    cached = to_cache_entry(seen(WHOLE["no behavior"]))
    book = HpaCache(records=1, on_change=lambda _: None, on_delete=lambda _: None)
    book.event_handler(NATIVE_HPAS)(Delta(CacheEvent.ADDED, new=cached))
    assert cached.whole is None
    assert (cached.metadata.key, cached.metadata.uid, cached.metadata.resource_version) == (
        "shop/web",
        "1",
        "7",
    )
    book.event_handler(NATIVE_HPAS)(Delta(CacheEvent.DELETED, old=cached))
    assert len(book) == 0


def undecoded(**parts: object) -> UndecodedHpa:
    meta = {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7"}
    return wire.decode(json.dumps({"metadata": meta, **parts}), UndecodedHpa)


@pytest.mark.parametrize("name", [*WHOLE, *PARTS])
def test_an_hpa_is_decoded_as_a_whole_unless_its_version_is_known(name):
    hpa = seen((WHOLE | PARTS)[name])
    book = HpaCache(records=1, on_change=lambda _: None, on_delete=lambda _: None)
    entry = book.read(undecoded(spec=wire.to_builtins(hpa.spec), status={"currentReplicas": 3}))
    assert entry.whole is not None
    assert (entry.whole.spec, entry.whole.status.current_replicas) == (hpa.spec, 3)
    book.event_handler(NATIVE_HPAS)(Delta(CacheEvent.ADDED, new=entry))
    again = book.read(undecoded(spec={"maxReplicas": "never read"}))
    assert (again.whole, again.metadata) == (None, entry.metadata)
    book.event_handler(NATIVE_HPAS)(Delta(CacheEvent.UPDATED, old=entry, new=again))
    found = book.named("shop", "web")
    assert found is not None
    assert found.hpa.status.current_replicas == 3


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"spec": {"maxReplicas": "ten"}}, r"^spec\.maxReplicas: expected `int`, got `str`$"),
        ({"spec": 7}, r"^spec: expected `object`, got `int`$"),
        ({"status": {"conditions": [{"type": 1}]}}, r"^status\.conditions\[0\]\.type: expected `str`"),
    ],
)
def test_a_field_that_cannot_be_read_is_named_by_its_path(parts, why):
    book = HpaCache(records=1, on_change=lambda _: None, on_delete=lambda _: None)
    with pytest.raises(wire.WireError, match=why):
        book.read(undecoded(**parts))


def test_a_null_means_absent():
    book = HpaCache(records=1, on_change=lambda _: None, on_delete=lambda _: None)
    entry = book.read(undecoded(spec={"maxReplicas": 3, "behavior": None}, status=None))
    assert entry.whole is not None
    assert (entry.whole.spec.max_replicas, entry.whole.spec.behavior) == (3, None)


@pytest.mark.parametrize("generations", [(0, 0), (3, 3), (3, 4)], ids=["none", "not raised", "raised"])
def test_a_changed_native_spec_acts_at_once_whatever_its_generation_says(generations: tuple[int, int]):
    """A server before 1.37 keeps a stored generation and does not raise it; the change was never seen."""
    changed: list[int] = []
    book = HpaCache(
        records=1,
        on_change=lambda state: changed.append(state.hpa.spec.max_replicas),
        on_delete=lambda _: None,
    )
    handle = book.event_handler(NATIVE_HPAS)
    for version, (generation, most) in enumerate(zip(generations, (10, 12), strict=True), start=7):
        hpa = seen({"minReplicas": 1, "metrics": [CPU], "maxReplicas": most})
        meta = msgspec.structs.replace(hpa.metadata, generation=generation, resource_version=str(version))
        handle(Delta(CacheEvent.UPDATED, new=to_cache_entry(msgspec.structs.replace(hpa, metadata=meta))))
    assert changed == [10, 12]


@pytest.mark.parametrize(
    ("resource", "generations", "is_compared"),
    [
        pytest.param(OWN_HPAS, (3, 3), False, id="our own kind: the generation says that nothing changed"),
        pytest.param(OWN_HPAS, (3, 4), True, id="another generation"),
        pytest.param(OWN_HPAS, (0, 0), True, id="no generation"),
        pytest.param(NATIVE_HPAS, (3, 3), True, id="a native HPA of an older server"),
    ],
)
def test_a_changed_spec_is_noticed_where_the_generation_may_not_say(resource, generations, is_compared):
    book = HpaCache(records=1, on_change=lambda _: None, on_delete=lambda _: None)
    for version, (generation, most) in enumerate(zip(generations, (10, 20), strict=True), start=7):
        hpa = seen({**WHOLE["no behavior"], "maxReplicas": most})
        meta = msgspec.structs.replace(hpa.metadata, generation=generation, resource_version=str(version))
        entry = to_cache_entry(msgspec.structs.replace(hpa, metadata=meta))
        book.event_handler(resource)(Delta(CacheEvent.UPDATED, new=entry))
    found = book.named("shop", "web")
    assert found is not None
    assert found.hpa.spec.max_replicas == (20 if is_compared else 10)
