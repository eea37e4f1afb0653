"""Which HPA a name means."""

import pytest

from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS, to_cache_entry


def entry(uid, name="web", namespace="shop"):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": "7"}
    whole = {"metadata": meta, "spec": {"scaleTargetRef": target, "maxReplicas": 10}}
    return to_cache_entry(wire.convert(whole, HorizontalPodAutoscaler))


def uid_of(cache, name):
    found = cache.named("shop", name)
    return found and found.uid


@pytest.mark.parametrize("order", [("own", "native"), ("native", "own")])
def test_the_own_kind_wins_over_a_native_hpa_of_the_same_name(order):
    deleted: list[HpaState] = []
    cache = HpaCache(records=1, on_change=lambda _: None, on_delete=deleted.append)
    kinds = {"own": OWN_HPAS, "native": NATIVE_HPAS}
    for uid in order:
        cache.event_handler(kinds[uid])(Delta(CacheEvent.ADDED, new=entry(uid)))
    cache.event_handler(OWN_HPAS)(Delta(CacheEvent.ADDED, new=entry("third", name="other")))
    assert len(cache) == 3
    assert uid_of(cache, "web") == "own"
    assert uid_of(cache, "other") == "third"
    assert cache.named("elsewhere", "web") is None
    cache.event_handler(OWN_HPAS)(Delta(CacheEvent.DELETED, old=entry("own")))
    assert uid_of(cache, "web") == "native"
    assert [state.uid for state in deleted] == ["own"]
    assert cache.get("own") is None
