"""Native HPAs on the same targets, which kube-controller-manager or KEDA serves while Trimtab serves its own kind.

They are not watched, because their statuses change in every sync. One list of a namespace is kept for a minute. It is asked for
before the first decision about an HPA and before each scale.
"""

import asyncio

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.decide.horizontal.reasons import Rival, Rivals
from trimtab.model.core.meta import CrossVersionObjectReference, group_of
from trimtab.model.json.wire import Wire
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, SlimMeta

KEPT_SECONDS = 60.0
RETRY_SECONDS = 5.0
_NONE = Rivals()
_KEDA = ("keda.sh", "ScaledObject")


class _Spec(Wire):
    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()


class _NativeHpa(Wire):
    """A native HPA without all but its name, its owners and its target."""

    metadata: SlimMeta = SlimMeta()
    spec: _Spec = _Spec()


class _Listed(Wire):
    at: float
    by_target: dict[tuple[str, str, str], tuple[Rival, ...]] = {}
    unseen: str = ""


class RivalCache:
    """The native HPAs of the namespaces in which own HPAs were decided."""

    def __init__(self, clock: Clock, client: Client, *, is_asked: bool, is_only_told: bool = False) -> None:
        """Ask for them unless Trimtab serves native HPAs itself."""
        self._is_only_told = is_only_told
        self._clock = clock
        self._client = client
        self._is_asked = is_asked
        self._listed: dict[str, _Listed] = {}
        self._flights: dict[str, asyncio.Task[_Listed]] = {}

    def is_due(self, hpa_state: HpaState) -> bool:
        """Return whether the native HPAs of the namespace must be listed before the HPA is decided."""
        if not self._is_asked or hpa_state.is_native:
            return False
        known = self._known(hpa_state)
        is_first = known is None or hpa_state.memory.is_first_decision
        return (is_first or self.of(hpa_state) != _NONE) and not self._is_fresh(known)

    def of(self, hpa_state: HpaState) -> Rivals:
        """Return the native HPAs on the target of an own HPA, as they were last listed."""
        known = self._known(hpa_state)
        if known is None or hpa_state.is_native:
            return _NONE
        target = hpa_state.hpa.spec.scale_target_ref
        found = known.by_target.get((group_of(target.api_version), target.kind, target.name), ())
        if not found and not known.unseen:
            return _NONE
        return Rivals(hpas=found, unseen=known.unseen, is_only_told=self._is_only_told)

    async def look(self, hpa_state: HpaState) -> bool:
        """List the native HPAs of the namespace unless that is fresh, and return whether the HPA's rivals changed."""
        if not self._is_asked or hpa_state.is_native or self._is_fresh(self._known(hpa_state)):
            return False
        before, namespace = self.of(hpa_state), hpa_state.hpa.metadata.namespace
        flight = self._flights.get(namespace)
        if flight is None:
            flight = self._flights[namespace] = asyncio.ensure_future(self._list(namespace))
            flight.add_done_callback(lambda _: self._flights.pop(namespace, None))
        self._listed[namespace] = await asyncio.shield(flight)
        return self.of(hpa_state) != before

    def _known(self, hpa_state: HpaState) -> _Listed | None:
        return self._listed.get(hpa_state.hpa.metadata.namespace)

    def _is_fresh(self, known: _Listed | None) -> bool:
        return known is not None and self._clock.monotonic() - known.at < KEPT_SECONDS

    async def _list(self, namespace: str) -> _Listed:
        at, by_target = self._clock.monotonic(), dict[tuple[str, str, str], tuple[Rival, ...]]()
        try:
            listed = await self._client.list(NATIVE_HPAS.into(_NativeHpa), ListOptions(namespace))
        except errors.NotFound:
            return _Listed(at=at)  # the cluster serves no native HPAs
        except errors.Forbidden as error:
            return _Listed(at=at, unseen=str(error))
        except errors.ClusterError:
            # The server is in trouble. A scale could not be written either.
            known = self._listed.get(namespace)
            by_target = {} if known is None else known.by_target
            return _Listed(at=at - KEPT_SECONDS + RETRY_SECONDS, by_target=by_target)
        for hpa in sorted(listed.items, key=lambda hpa: hpa.metadata.name):
            target, owners = hpa.spec.scale_target_ref, hpa.metadata.owner_references
            keda = next((owner.name for owner in owners if (owner.group, owner.kind) == _KEDA), "")
            key = group_of(target.api_version), target.kind, target.name
            rival = Rival(name=hpa.metadata.name, scaled_object=keda)
            by_target[key] = (*by_target.get(key, ()), rival)
        return _Listed(at=at, by_target=by_target)
