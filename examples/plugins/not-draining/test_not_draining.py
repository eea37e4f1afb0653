"""Pods on drained nodes do not count."""

from not_draining import keep_not_draining

from trimtab.plugins import FilterNode, FilterPod, FilterTarget, PodFilterInput
from trimtab.plugins.testing import check_pod_filter

TARGET = FilterTarget(namespace="shop", kind="Deployment", name="web")


def pod(name: str, node: str, *, is_drained: bool) -> FilterPod:
    return FilterPod(name=name, node_name=node, node=FilterNode(name=node, is_unschedulable=is_drained))


def test_a_pod_on_a_drained_node_does_not_count() -> None:
    pods = (pod("web-1", "a", is_drained=True), pod("web-2", "b", is_drained=False))
    seen = PodFilterInput(pods=pods, target=TARGET)
    assert keep_not_draining(seen) == {"web-1": "node a is drained"}


def test_all_pods_count_while_every_node_is_drained() -> None:
    seen = PodFilterInput(pods=(pod("web-1", "a", is_drained=True),), target=TARGET)
    assert keep_not_draining(seen) == {}


def test_it_keeps_the_protocol() -> None:
    check_pod_filter(keep_not_draining)
