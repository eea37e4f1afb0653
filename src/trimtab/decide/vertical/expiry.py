"""Which aggregates are no longer needed."""

from collections.abc import Callable

from trimtab.decide.vertical.aggregate import Aggregate
from trimtab.decide.vertical.state import ClusterState, PodState
from trimtab.decide.vertical.vpastate import AggregateKey, VPAState

ControllerExists = Callable[[VPAState], bool]
"""Whether the controller that a VPA targets still exists."""


def collect_garbage(
    state: ClusterState, now_ns: int, controller_exists: ControllerExists
) -> list[AggregateKey]:
    """Forget aggregates that nothing feeds and nothing is in, and those whose history has expired; return them.

    History loaded from checkpoints belongs to its VPA and is not collected.
    """
    needed = {
        container.key
        for pod in state.pods.values()
        if _may_contribute(state, pod, controller_exists)
        for container in pod.containers.values()
    }
    doomed = [
        key
        for key, aggregate in sorted(state.aggregates.items(), key=lambda item: item[0])
        if _is_garbage(aggregate, key in needed, now_ns)
    ]
    for key in doomed:
        state.forget_aggregate(key)
    return doomed


def _is_garbage(aggregate: Aggregate, is_needed: bool, now_ns: int) -> bool:
    return (aggregate.is_empty and not is_needed) or aggregate.is_expired(now_ns)


def _may_contribute(state: ClusterState, pod: PodState, controller_exists: ControllerExists) -> bool:
    if pod.is_active:
        return True
    vpa = next(state.vpas_of(pod), None)
    return vpa is not None and controller_exists(vpa)


class Collector:
    """Collects garbage at most once per interval."""

    def __init__(self, interval_ns: int) -> None:
        self.interval_ns = interval_ns
        self._last_ns: int | None = None

    def collect(
        self, state: ClusterState, now_ns: int, controller_exists: ControllerExists
    ) -> list[AggregateKey]:
        """Collect if the interval has passed since the last time."""
        if self._last_ns is not None and now_ns - self._last_ns < self.interval_ns:
            return []
        self._last_ns = now_ns
        return collect_garbage(state, now_ns, controller_exists)
