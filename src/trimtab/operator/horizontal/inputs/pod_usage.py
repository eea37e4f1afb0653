"""The usage of pods, for one namespace or for all of them at once, and when one list for all is the cheaper question.

Each list costs the server and us a request, and each pod in it a little. One list for all pays when the requests that
it saves are worth more than the pods that nobody asked for. It is only ever a saving: if it is forbidden, too large,
too slow or broken, the namespaces are asked one by one in the same round, and for a while after.
"""

import logging
from collections.abc import Collection

from trimtab.clock import Clock
from trimtab.cluster.cache.informers import SharedInformers
from trimtab.cluster.resource import PODS
from trimtab.decide.horizontal import MetricSamples, PodSnapshot
from trimtab.decide.horizontal.observation.samples import each_usage, read_usage, span_of
from trimtab.metrics.queries import PodUsage
from trimtab.model.metrics_api import PodMetrics, PodMetricsList

log = logging.getLogger(__name__)

ALL_NAMESPACES = PodUsage()
"""The question for the usage of all pods of the cluster."""

PODS_PER_REQUEST = 300
"""How many pods too many are as cheap as one more request: both sides spend 1 ms on a request, 2 to 3 us on a pod."""

MOST_PODS_AT_ONCE = 25_000
"""Beyond this a list for all takes more memory while it is read (1.3 KB per pod) than the pods take for good (0.8 KB)."""

FIRST_PAUSE = 60.0
LONGEST_PAUSE = 3600.0
"""Seconds for which a list for all that failed is not tried again; each further failure doubles them."""


class NamespaceUsage:
    """CPU and memory of the pods of one namespace, by pod."""

    __slots__ = ("_items", "span")

    def __init__(self, items: dict[str, PodMetrics], span: tuple[float, float]) -> None:
        self._items = items
        self.span = span
        """Within which time all of it was measured, and maybe that of other namespaces."""

    def of(self, pods: tuple[PodSnapshot, ...], resource: str, container: str) -> MetricSamples:
        """Return the reading of one resource for these pods."""
        known = self._items
        return read_usage(
            [known[pod.name] for pod in pods if pod.name in known], resource, container, wraps=False
        )

    def values(self, pods: tuple[PodSnapshot, ...], resource: str, container: str) -> list[int] | None:
        """Return what each of these pods uses; None if it is not known of all."""
        known = self._items
        try:
            return each_usage([known[pod.name] for pod in pods], resource, container)
        except KeyError:
            return None


class ClusterUsage:
    """CPU and memory of the pods of every namespace."""

    __slots__ = ("_namespaces", "_nothing")

    def __init__(self, answer: PodMetricsList) -> None:
        span = span_of(answer.items)
        namespaces: dict[str, dict[str, PodMetrics]] = {}
        place, last = "", namespaces.setdefault("", {})
        for item in answer.items:
            meta = item.metadata
            if meta.namespace != place:  # they come in the order of namespaces
                place, last = meta.namespace, namespaces.setdefault(meta.namespace, {})
            last[meta.name] = item
        self._namespaces = {place: NamespaceUsage(items, span) for place, items in namespaces.items()}
        self._nothing = NamespaceUsage({}, span)

    def within(self, namespace: str | None) -> NamespaceUsage:
        """Return what a list of one namespace would have said."""
        return self._namespaces.get(namespace or "", self._nothing)


def namespace_usage(answer: PodMetricsList) -> NamespaceUsage:
    """Return an answer about one namespace by pod."""
    return NamespaceUsage({item.metadata.name: item for item in answer.items}, span_of(answer.items))


class ListAllPolicy:
    """Knows whether to ask for the usage of all pods at once."""

    def __init__(self, clock: Clock, caches: SharedInformers, *, is_allowed: bool) -> None:
        self._clock = clock
        self._caches = caches
        self._is_allowed = is_allowed
        self._not_before = 0.0
        self._pause = FIRST_PAUSE

    def pays(self, namespaces: Collection[str]) -> bool:
        """Return whether one list for all is cheaper than one for each of these namespaces."""
        if not self._is_allowed or len(namespaces) < 2 or self._clock.monotonic() < self._not_before:
            return False
        pods = self._caches.running(PODS.group, PODS.kind)
        if pods is None or len(pods) > MOST_PODS_AT_ONCE:
            return False
        unasked = len(pods) - sum(pods.count_in(namespace) for namespace in namespaces)
        return unasked <= PODS_PER_REQUEST * (len(namespaces) - 1)

    def worked(self) -> None:
        """Take note of a list for all that was answered."""
        self._pause = FIRST_PAUSE

    def failed(self, why: str) -> None:
        """Take note of a list for all that was not answered; the namespaces are asked one by one for a while."""
        log.info(
            "usage of all pods at once was not answered (%s); asking by namespace for %.0f s",
            why,
            self._pause,
        )
        self._not_before = self._clock.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
