"""Deletes aggregates and loaded history that are expired or unused."""

from collections.abc import Callable

from trimtab.decide.vertical.cluster_state.aggregates import Aggregate
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, PodState
from trimtab.decide.vertical.cluster_state.vpa import AggregateKey, VPAState

ControllerExists = Callable[[VPAState], bool]
"""Returns whether the controller that a VPA targets still exists."""


def collect_garbage(
    state: ClusterState, now_ns: int, controller_exists: ControllerExists
) -> list[AggregateKey]:
    """Delete empty aggregates that no pod feeds and expired aggregates, and return their keys.

    History loaded from checkpoints belongs to its VPA. It expires only for containers that are gone for a whole window.
    """
    in_use = {
        container.key
        for pod in state.pods.values()
        if _may_contribute(state, pod, controller_exists)
        for container in pod.containers.values()
    }
    garbage = [
        key
        for key, aggregate in sorted(state.aggregates.items(), key=lambda item: item[0])
        if _is_garbage(aggregate, key in in_use, now_ns)
    ]
    for key in garbage:
        state.delete_aggregate(key)
    for vpa in state.vpas.values():
        expire_loaded_history(state, vpa, now_ns)
    state.release_retired_history()
    state.delete_unused_labels()
    state.delete_empty_namespaces()
    return garbage


def expire_loaded_history(state: ClusterState, vpa: VPAState, now_ns: int) -> tuple[str, ...]:
    """Delete the loaded history of containers that are gone, and return their names.

    A container is gone if the VPA has pods, none of them has the container, and its last sample is a whole window old:
    it was renamed or removed from the template.
    """
    if not state.rules.ours or vpa.pod_count <= 0:
        return ()
    old = [name for name, history in vpa.initial.items() if history.is_empty or history.is_expired(now_ns)]
    if not old:
        return ()
    pods = state.namespace(vpa.vpa.metadata.namespace).pods.values()
    present = {name for pod in pods if state.is_matched(pod, vpa) for name in pod.containers}
    gone = tuple(name for name in old if name not in present)
    for name in gone:
        vpa.initial.pop(name).release()
    return gone


def _is_garbage(aggregate: Aggregate, is_used: bool, now_ns: int) -> bool:
    return (aggregate.is_empty and not is_used) or aggregate.is_expired(now_ns)


def _may_contribute(state: ClusterState, pod: PodState, controller_exists: ControllerExists) -> bool:
    if pod.is_active:
        return True
    vpa = next(state.vpas_of(pod), None)
    return vpa is not None and controller_exists(vpa)


class AggregateCollector:
    """Collects garbage at most once per interval."""

    def __init__(self, interval_ns: int) -> None:
        self.interval_ns = interval_ns
        self._last_ns: int | None = None

    def collect(
        self, state: ClusterState, now_ns: int, controller_exists: ControllerExists
    ) -> list[AggregateKey]:
        """Collect garbage if the interval has passed since the last collection."""
        if self._last_ns is not None and now_ns - self._last_ns < self.interval_ns:
            return []
        self._last_ns = now_ns
        return collect_garbage(state, now_ns, controller_exists)
