"""Counts the pods and VPAs of one update loop under upstream's metric names."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping

from trimtab.decide.vertical.control.claims import DRIVING_MODES
from trimtab.decide.vertical.recommend.quality import size_log2
from trimtab.decide.vertical.update.actions import ActionResult, Evict
from trimtab.model.core.meta import NamespacedName
from trimtab.model.vpa.types import UpdateMode
from trimtab.operator.vertical.metrics import UpdaterMetrics
from trimtab.operator.vertical.updater.actuator import Performed

_NOTHING_TRIED = (ActionResult.DRY_RUN, ActionResult.RATE_LIMITED)


def count_loop(
    metrics: UpdaterMetrics,
    sizes: Mapping[str, int],
    done: Iterable[Performed],
    update_mode: Callable[[NamespacedName], str | None],
) -> None:
    """Count one loop, given the number of pods per VPA and the actions performed.

    `update_mode` returns None for a VPA that does not exist.
    """

    def mode_of(vpa: str) -> str:
        return update_mode(NamespacedName.parse(vpa)) or UpdateMode.RECREATE.value

    # Without a name: ends of boosts that no VPA gives any more.
    metrics.keep_vpas(lambda vpa: not vpa.name or update_mode(vpa) is not None)

    modes = {vpa: mode_of(vpa) for vpa in sizes}
    _reset(metrics, sizes, modes)
    evictable, resizable, evicted, resized = Tally[str](), Tally[str](), set[str](), set[str]()
    for performed in done:
        vpa, is_eviction = performed.action.vpa.key, isinstance(performed.action, Evict)
        if not performed.action.vpa.metadata.name:  # ends a boost that no VPA gives any more
            _count_outcome(metrics, performed, size_log2(0), "")
            continue
        (evictable if is_eviction else resizable)[vpa] += 1
        if performed.outcome is ActionResult.DONE:
            (evicted if is_eviction else resized).add(vpa)
        _count_outcome(metrics, performed, size_log2(sizes.get(vpa, 0)), modes.get(vpa) or mode_of(vpa))
    for vpa in {*evictable, *resizable}:
        size, mode = size_log2(sizes.get(vpa, 0)), modes.get(vpa) or mode_of(vpa)
        metrics.evictable.labels(size, mode).inc(evictable[vpa])
        metrics.vpas_evictable.labels(size, mode).inc(vpa in evictable)
        metrics.vpas_evicted.labels(size, mode).inc(vpa in evicted)
        metrics.in_place.labels(size).inc(resizable[vpa])
        metrics.vpas_in_place.labels(size).inc(vpa in resizable)
        metrics.vpas_resized.labels(size).inc(vpa in resized)


def _reset(metrics: UpdaterMetrics, sizes: Mapping[str, int], modes: Mapping[str, str]) -> None:
    """Set the gauges of this loop to 0 and create the counters of new VPAs."""
    for gauge in (
        metrics.controlled,
        metrics.evictable,
        metrics.vpas_evictable,
        metrics.vpas_evicted,
        metrics.in_place,
        metrics.vpas_in_place,
        metrics.vpas_resized,
    ):
        gauge.clear()
    for vpa, count in sizes.items():
        if modes[vpa] not in DRIVING_MODES:
            continue
        size, where = size_log2(count), NamespacedName.parse(vpa)
        metrics.controlled.labels(size, modes[vpa]).inc(count)
        # increase() misses the first event of a counter that starts with that event.
        metrics.count_for(where, metrics.evicted, size, modes[vpa], where.name, where.namespace)
        metrics.count_for(where, metrics.resized, size, where.name, where.namespace)
        metrics.count_for(where, metrics.infeasible, size, where.name, where.namespace)


def _count_outcome(metrics: UpdaterMetrics, performed: Performed, size: str, mode: str) -> None:
    outcome, meta = performed.outcome, performed.action.vpa.metadata
    if outcome in _NOTHING_TRIED:
        return
    is_eviction = isinstance(performed.action, Evict)
    labels = (size, mode, meta.name, meta.namespace) if is_eviction else (size, meta.name, meta.namespace)
    if outcome is ActionResult.DONE:
        counter = metrics.evicted if is_eviction else metrics.resized
    elif outcome is ActionResult.INFEASIBLE and not is_eviction:
        counter = metrics.infeasible
    else:
        counter = metrics.failed if is_eviction else metrics.resize_failed
        labels = (*labels, outcome.value)
    metrics.count_for(meta.namespaced_name, counter, *labels).inc()
