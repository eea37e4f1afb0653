"""Feeds the horizontal controller with pods, from the one pod watch of the process."""

from collections.abc import Callable
from typing import Any

from trimtab.cluster.cache.shared import NamespacedInformer, SharedInformers
from trimtab.cluster.cache.store import Delta
from trimtab.model.core.pod import Pod
from trimtab.operator.pods.decoder import CachedPod, PodDecoder, PodReducer
from trimtab.operator.pods.wire import SLIM_PODS, WHOLE_PODS


def follow_pods(
    informers: SharedInformers,
    subscriber: Callable[[Delta[CachedPod]], None],
    on_page: Callable[[], None],
    *,
    pod_level_resources: bool,
    keeps_nodes: bool = False,
) -> NamespacedInformer[Any]:
    """Subscribe to the snapshots of all pods, with their nodes if `keeps_nodes`. Return their informer.

    `on_page` is called after each page of the first list, unless a vertical component watches whole pods.
    Where a vertical component watches whole pods, snapshots are made from those. So create the vertical components
    before this is called.
    """
    if not informers.has(WHOLE_PODS):
        decoder = PodDecoder(pod_level_resources=pod_level_resources, keeps_nodes=keeps_nodes)
        pods = informers.get(SLIM_PODS.with_transform(decoder))
        pods.subscribe(subscriber)
        pods.publish_pages(on_page)
        return pods
    whole: NamespacedInformer[Any] = informers.get(WHOLE_PODS)
    reduce = PodReducer(pod_level_resources=pod_level_resources, keeps_nodes=keeps_nodes)

    def pass_on(delta: Delta[Pod]) -> None:
        if delta.new is not None:
            subscriber(Delta(delta.change, new=reduce(delta.new)))
        else:
            subscriber(Delta(delta.change, old=None if delta.old is None else reduce(delta.old)))

    whole.subscribe(pass_on)
    return whole
