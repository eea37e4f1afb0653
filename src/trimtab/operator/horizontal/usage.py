"""The usage of pods, listed per namespace or for all namespaces at once.

Each list costs a request, and each pod in it a little. One list for all namespaces pays when the requests that it
saves cost more than the pods that no HPA needs. If that list is forbidden, too large, too slow or broken, the
namespaces are listed one by one in the same sync, and for a while after.
"""

import logging
from collections.abc import Collection
from math import inf

from trimtab.clock import Clock
from trimtab.cluster.cache.shared import SharedInformers
from trimtab.cluster.resource import PODS
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.observation.samples import MetricSamples, each_usage, read_usage
from trimtab.metrics.queries import PodUsage
from trimtab.model.metrics_api import PodMetrics, PodMetricsList
from trimtab.operator.horizontal.sample_moves import Moves

log = logging.getLogger(__name__)

ALL_NAMESPACES = PodUsage()
"""The query for the usage of all pods of the cluster."""

PODS_PER_REQUEST = 300
"""How many unneeded pods cost as much as one request: a request costs both sides 1 ms, a pod 2 to 3 us."""

MOST_PODS_AT_ONCE = 25_000
"""Beyond this, one list for all takes more memory (1.3 KB per pod) than the cached pods (0.8 KB). Lists of namespaces are
dropped one by one."""

FIRST_PAUSE = 60.0
LONGEST_PAUSE = 3600.0
"""Seconds without another list for all after it failed; each further failure doubles them."""


class NamespaceUsage:
    """CPU and memory of the pods of one namespace, by pod."""

    __slots__ = ("items", "moved_at", "moves")

    def __init__(self, items: dict[str, PodMetrics]) -> None:
        self.items = items
        self.moves: Moves = {}
        """When the dates of these samples were first seen, by the monotonic clock."""
        self.moved_at = -inf
        """When the date moved that has not moved for the longest time."""

    def samples(self, pods: tuple[PodSnapshot, ...], resource: str, container: str) -> MetricSamples:
        """Return the samples of one resource for these pods."""
        items = self.items
        # The samples are kept with the decision. The names of the cached pods are shared by all records of an HPA.
        names = [pod.name for pod in pods if pod.name in items]
        return read_usage([items[name] for name in names], resource, container, names=names)

    def values(self, pods: tuple[PodSnapshot, ...], resource: str, container: str) -> list[int] | None:
        """Return the usage of each of these pods, or None if a pod has no sample."""
        items = self.items
        try:
            return each_usage([items[pod.name] for pod in pods], resource, container)
        except KeyError:
            return None


class ClusterUsage:
    """CPU and memory of the pods of every namespace."""

    __slots__ = ("_empty", "namespaces")

    def __init__(self, listed: PodMetricsList) -> None:
        namespaces: dict[str, dict[str, PodMetrics]] = {}
        namespace, items = "", namespaces.setdefault("", {})
        for item in listed.items:
            meta = item.metadata
            if meta.namespace != namespace:  # the list is sorted by namespace
                namespace, items = meta.namespace, namespaces.setdefault(meta.namespace, {})
            items[meta.name] = item
        self.namespaces = {name: NamespaceUsage(items) for name, items in namespaces.items()}
        self._empty = NamespaceUsage({})

    def within(self, namespace: str | None) -> NamespaceUsage:
        """Return what a list of one namespace would have returned."""
        return self.namespaces.get(namespace or "", self._empty)


def namespace_usage(listed: PodMetricsList, namespace: str | None = None) -> NamespaceUsage:
    """Index the list of one namespace by pod, without items of other namespaces if one is given."""
    items = listed.items
    if namespace is not None:
        items = tuple(item for item in items if item.metadata.namespace in {namespace, ""})
    return NamespaceUsage({item.metadata.name: item for item in items})


class ListAllPolicy:
    """Decides whether one list for all namespaces is used, and backs off after it failed."""

    def __init__(self, clock: Clock, caches: SharedInformers) -> None:
        self._clock = clock
        self._caches = caches
        self._is_allowed = caches.share.covers_all
        self._not_before = 0.0
        self._pause = FIRST_PAUSE

    def is_cheaper(self, namespaces: Collection[str]) -> bool:
        """Return whether one list for all is cheaper than one for each of these namespaces."""
        if not self._is_allowed or len(namespaces) < 2 or self._clock.monotonic() < self._not_before:
            return False
        pods = self._caches.running(PODS.group, PODS.kind)
        if pods is None or len(pods) > MOST_PODS_AT_ONCE:
            return False
        unneeded = len(pods) - sum(pods.count_in(namespace) for namespace in namespaces)
        return unneeded <= PODS_PER_REQUEST * (len(namespaces) - 1)

    def note_success(self) -> None:
        """Reset the back-off."""
        self._pause = FIRST_PAUSE

    def note_failure(self, reason: str) -> None:
        """Back off: use one list per namespace for a while. Many batches may have waited for one list."""
        if self._clock.monotonic() < self._not_before:
            return
        log.info(
            "the list of all PodMetrics failed (%s); listing by namespace for %.0f s", reason, self._pause
        )
        self._not_before = self._clock.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
