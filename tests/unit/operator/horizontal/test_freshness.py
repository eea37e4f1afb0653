"""Which stale caches an HPA depends on, and whether its target is read instead, in virtual time."""

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.cache.parts import Share
from trimtab.cluster.resource import PODS
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.operator.horizontal.freshness import CHECK_SECONDS, Freshness
from trimtab.operator.horizontal.kinds import NATIVE_HPAS

HPAS, TARGETS, ALL_PODS = (
    (NATIVE_HPAS.group, NATIVE_HPAS.kind),
    ("apps", "Deployment"),
    (PODS.group, PODS.kind),
)


class Caches:
    """The informers of a component, with the reasons that the test says."""

    share = Share(["shop", "other"])

    def __init__(self, **reasons):
        self.asked = 0
        self.reasons = reasons

    def stale_reasons(self):
        self.asked += 1
        return self.reasons


def caches(*stale, namespace=""):
    found = Caches()
    found.reasons = {kind: {namespace: "no sign"} for kind in stale}
    return found


def hpa(kind="Deployment"):
    target = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
    meta = {"name": "web", "namespace": "shop", "uid": "1"}
    return wire.convert(
        {"metadata": meta, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}, HorizontalPodAutoscaler
    )


def stale(found, kind="Deployment", *, is_target_read=False):
    freshness = Freshness(VirtualClock(), found)
    inputs = freshness.stale_inputs(NATIVE_HPAS, hpa(kind), is_target_read=is_target_read)
    return [(stale_input.input, stale_input.message) for stale_input in inputs]


@pytest.mark.parametrize("namespace", ["", "shop"], ids=["of all namespaces", "of its own namespace"])
@pytest.mark.parametrize(
    ("kinds", "want"),
    [
        ((), []),
        ((HPAS,), ["hpa"]),
        ((TARGETS,), ["target"]),
        ((ALL_PODS,), ["pods"]),
        ((HPAS, TARGETS, ALL_PODS), ["hpa", "target", "pods"]),
        ((("apps", "StatefulSet"),), []),
    ],
)
def test_an_hpa_depends_on_its_kind_its_target_and_pods(kinds, want, namespace):
    found = stale(caches(*kinds, namespace=namespace))
    assert [name for name, _ in found] == want
    assert all("of namespace shop: no sign" in message for _, message in found)


def test_stale_caches_of_another_namespace_do_not_matter():
    assert stale(caches(HPAS, TARGETS, ALL_PODS, namespace="other")) == []


def test_a_target_that_was_read_or_is_not_cached_is_not_stale():
    everything = caches(HPAS, TARGETS, ALL_PODS)
    assert [name for name, _ in stale(everything, is_target_read=True)] == ["hpa", "pods"]
    assert [name for name, _ in stale(everything, "Rollout")] == ["hpa", "pods"]


@pytest.mark.parametrize(
    ("kinds", "namespace", "want"),
    [
        pytest.param((), "", False, id="nothing is stale"),
        pytest.param((TARGETS,), "", True, id="only the target's kind"),
        pytest.param((TARGETS, HPAS), "", True, id="the target's kind and HPAs"),
        pytest.param((TARGETS,), "other", False, id="the target's kind elsewhere"),
        pytest.param((TARGETS, ALL_PODS), "", False, id="pods too, so that the server may be in trouble"),
        pytest.param((ALL_PODS,), "", False, id="only pods"),
        pytest.param((HPAS,), "", False, id="only HPAs"),
    ],
)
def test_the_target_is_read_if_only_its_kind_is_stale(kinds, namespace, want):
    freshness = Freshness(VirtualClock(), caches(*kinds, namespace=namespace))
    assert freshness.must_read_target(hpa().spec.scale_target_ref, "shop") is want


def test_the_caches_are_asked_once_for_many_hpas():
    clock, found = VirtualClock(), caches(HPAS)
    freshness = Freshness(clock, found)
    counts = []
    for seconds in (0.0, CHECK_SECONDS * 0.9, CHECK_SECONDS * 0.2):
        clock.advance(seconds)
        for _ in range(3):
            freshness.stale_inputs(NATIVE_HPAS, hpa(), is_target_read=False)
        counts.append(found.asked)
    assert counts == [1, 1, 2]


def test_the_answer_of_the_caches_is_used_for_less_than_a_second():
    clock, found = VirtualClock(), caches(HPAS)
    freshness = Freshness(clock, found)
    for seconds, asked in ((0.0, 1), (CHECK_SECONDS, 2), (0.5, 2), (0.5, 3)):
        clock.advance(seconds)
        freshness.stale_inputs(NATIVE_HPAS, hpa(), is_target_read=False)
        assert found.asked == asked
