"""Two HPAs conflict if both scale and their selectors match the same pods."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import EVERY_GATE, pod, scale
from tests.unit.operator.horizontal.fakes import hpa_state
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.model.hpa.dry_run import MODE_ANNOTATION
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.kinds import OWN_HPAS, to_cache_entry
from trimtab.operator.horizontal.nodes import FilterNeeds
from trimtab.operator.horizontal.pods import PodIndex, PodMatcher
from trimtab.operator.horizontal.targets import ResolvedTarget
from trimtab.operator.pods.decoder import CachedPod
from trimtab.plugins.guard import Guards
from trimtab.plugins.registry import NO_PLUGINS

NO_NEEDS = FilterNeeds(Guards(NO_PLUGINS))


class World:
    def __init__(self) -> None:
        self.hpas = HpaCache(records=1, on_change=lambda _: None, on_delete=lambda _: None)
        self.pods = PodIndex()
        self.matcher = PodMatcher(EVERY_GATE, self.hpas, self.pods, NO_NEEDS)

    def add_pod(self, name: str, **labels: str) -> None:
        snapshot = msgspec.structs.replace(pod(name), uid=name, labels=labels)
        self.pods.on_pod_event(Delta(CacheEvent.ADDED, new=CachedPod(snapshot, "shop", "1")))

    def add_hpa(self, name: str, selector: str, *, mode: str = "", target_uid: str = "web"):
        made = hpa_state(name).hpa
        annotations = {MODE_ANNOTATION: mode} if mode else {}
        meta = msgspec.structs.replace(made.metadata, annotations=annotations)
        entry = to_cache_entry(msgspec.structs.replace(made, metadata=meta))
        self.hpas.event_handler(OWN_HPAS)(Delta(CacheEvent.ADDED, new=entry))
        state = self.hpas.named("shop", name)
        assert state is not None
        self.matcher.register_target(state, ResolvedTarget(scale=scale(1, selector=selector, uid=target_uid)))
        return state


@pytest.mark.parametrize(
    ("selector", "how", "conflicting"),
    [
        pytest.param("app=web", {}, ["shop/b"], id="the same selector"),
        pytest.param("tier=front", {}, ["shop/b"], id="another selector that matches the same pod"),
        pytest.param("app=mail", {}, [], id="a selector of other pods"),
        pytest.param("", {}, [], id="an empty selector, which matches no pod here"),
        pytest.param("app in", {}, [], id="a selector that cannot be parsed"),
        pytest.param("app=web", {"mode": "DryRun"}, [], id="a dry run, which writes no scale"),
    ],
)
def test_hpas_conflict_over_the_pods_that_both_match(selector, how, conflicting):
    world = World()
    world.add_pod("web-1", app="web", tier="front")
    world.add_pod("mail-1", app="mail")
    first = world.add_hpa("a", "app=web")
    world.add_hpa("b", selector, **how)
    matched = world.matcher.matching_pods(first)
    assert [pod.name for pod in matched.pods] == ["web-1"]
    assert [hpa.key for hpa in matched.conflicting] == conflicting


@pytest.mark.parametrize(
    ("target_uid", "conflicting"),
    [
        pytest.param("web", [], id="it previews in place of the HPA that scales its target"),
        pytest.param("other", ["shop/b"], id="an HPA of another target stops it"),
    ],
)
def test_a_dry_run_conflicts_only_with_hpas_of_other_targets(target_uid, conflicting):
    world = World()
    world.add_pod("web-1", app="web")
    dry_run = world.add_hpa("a", "app=web", mode="DryRun")
    world.add_hpa("b", "app=web", target_uid=target_uid)
    assert [hpa.key for hpa in world.matcher.matching_pods(dry_run).conflicting] == conflicting


def test_matched_pods_follow_the_pods_and_the_selector():
    world = World()
    state = world.add_hpa("a", "app=web")
    assert world.matcher.matching_pods(state).pods == ()
    world.add_pod("web-2", app="web")
    world.add_pod("web-1", app="web")
    assert [pod.name for pod in world.matcher.matching_pods(state).pods] == ["web-1", "web-2"]
    world.matcher.forget(state)
    assert world.matcher.matching_pods(state).pods == ()
