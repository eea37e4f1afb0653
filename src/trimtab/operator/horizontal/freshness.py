"""Which caches behind the decision about an HPA are stale, by namespace and kind.

A decision depends on the HPA itself, its pods and its target. While one of these caches is stale the replicas are not
lowered. Owners are not listed here: an owner that is not cached is read, and pods whose owners cannot be read never
lower the replicas.
"""

from collections.abc import Iterator
from typing import Any, Literal

from trimtab.clock import Clock
from trimtab.cluster.cache.informer import FIRST_LIST
from trimtab.cluster.cache.shared import SharedInformers
from trimtab.cluster.resource import PODS, Resource
from trimtab.decide.horizontal.observation.observation import StaleInput
from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.operator.horizontal.kinds import CACHED_TARGETS

CHECK_SECONDS = 1.0
"""How long the answer of all caches is used. There may be a thousand of them, and many more HPAs."""


class Freshness:
    """Finds the stale inputs of HPAs."""

    def __init__(self, clock: Clock, caches: SharedInformers) -> None:
        self._clock = clock
        self._caches = caches
        self._reasons: dict[tuple[str, str], dict[str, str]] = {}
        self._checked_at: float | None = None

    def stale_inputs(
        self, resource: Resource[Any], hpa: HorizontalPodAutoscaler, *, is_target_read: bool
    ) -> tuple[StaleInput, ...]:
        """Return the caches that a decision about an HPA depends on and that are stale."""
        if not self._stale_caches():
            return ()
        return tuple(self._stale_inputs(resource, hpa, is_target_read=is_target_read))

    def must_read_target(self, reference: CrossVersionObjectReference, namespace: str) -> bool:
        """Return whether only the kind of the target is stale, so that the server can be asked instead.

        If the pods are stale too the server itself may be in trouble, and a request per HPA would not help it.
        """
        reasons = self._stale_caches()
        return (
            bool(reasons)
            and bool(self._reason(reference.group, reference.kind, namespace))
            and not self._reason(PODS.group, PODS.kind, namespace)
        )

    def _stale_inputs(
        self, resource: Resource[Any], hpa: HorizontalPodAutoscaler, *, is_target_read: bool
    ) -> Iterator[StaleInput]:
        namespace, reference = hpa.metadata.namespace, hpa.spec.scale_target_ref
        yield from self._stale("hpa", resource, namespace)
        target = CACHED_TARGETS.get((reference.group, reference.kind))
        if target is not None and not is_target_read:
            yield from self._stale("target", target, namespace)
        yield from self._stale("pods", PODS, namespace)

    def _stale(
        self, name: Literal["hpa", "target", "pods"], resource: Resource[Any], namespace: str
    ) -> Iterator[StaleInput]:
        reason = self._reason(resource.group, resource.kind, namespace)
        if reason:
            yield StaleInput(input=name, message=f"{resource.plural} of namespace {namespace}: {reason}")

    def _reason(self, group: str, kind: str, namespace: str) -> str:
        reasons = self._stale_caches().get((group, kind), {})
        reason = reasons.get("") or reasons.get(self._caches.share.part_of(namespace), "")
        # A namespace may be complete before the first list is.
        return "" if reason == FIRST_LIST and self._caches.has_listed(group, kind, namespace) else reason

    def _stale_caches(self) -> dict[tuple[str, str], dict[str, str]]:
        now = self._clock.monotonic()
        if self._checked_at is None or not 0 <= now - self._checked_at < CHECK_SECONDS:
            self._reasons, self._checked_at = self._caches.stale_reasons(), now
        return self._reasons
