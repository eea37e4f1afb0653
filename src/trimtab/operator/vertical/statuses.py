"""VPA statuses: which ones differ from what is stored, and writing those."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from trimtab.cluster import errors
from trimtab.cluster.patching import PatchType, Preconditions
from trimtab.decide.vertical.compat import DEFAULT, Compat
from trimtab.decide.vertical.moves import is_small_move
from trimtab.decide.vertical.vpastate import VPAState
from trimtab.model import wire
from trimtab.model.selector import NOTHING
from trimtab.model.vpa.types import VerticalPodAutoscaler, VerticalPodAutoscalerStatus, VPAConditionType
from trimtab.operator.caches import KindCache
from trimtab.operator.ownership import Ownership
from trimtab.operator.vertical.follow import Unusable
from trimtab.operator.vertical.kinds import VPAS

log = logging.getLogger(__name__)
UNSUPPORTED = VPAConditionType.CONFIG_UNSUPPORTED
FETCHING_MESSAGE = "Usage of the past is being read from Prometheus"


@dataclass(frozen=True)
class StatusChange:
    """A VPA and the status it should have."""

    vpa: VerticalPodAutoscaler
    status: VerticalPodAutoscalerStatus


def change_of(state: VPAState, compat: Compat = DEFAULT) -> StatusChange | None:
    """Return the status of a VPA that was recommended for, if it differs from the stored one by more than a little."""
    for kind in (UNSUPPORTED, VPAConditionType.CONFIG_DEPRECATED, VPAConditionType.FETCHING_HISTORY):
        state.conditions.pop(kind, None)
    status, stored = state.status(), state.vpa.status
    if status == stored or (compat.small_moves_wait and is_small_move(stored, status)):
        return None
    return StatusChange(state.vpa, status)


def inert_change(vpa: VerticalPodAutoscaler, why: Unusable, now_ns: int) -> StatusChange | None:
    """Return the status of a VPA that can do nothing: it says why, and keeps the last recommendation."""
    state = VPAState(vpa, NOTHING)
    state.update(vpa, per_vpa=False)
    state.recommendation = vpa.status.recommendation
    state.set_condition(UNSUPPORTED, True, why.reason, why.message, now_ns)
    status = state.status()
    return StatusChange(vpa, status) if status != vpa.status else None


def waiting_change(vpa: VerticalPodAutoscaler, now_ns: int) -> StatusChange | None:
    """Return the status of a VPA whose history is on its way: as it was, and it says so."""
    state = VPAState(vpa, NOTHING)
    state.update(vpa, per_vpa=False)
    state.set_condition(VPAConditionType.FETCHING_HISTORY, True, "", FETCHING_MESSAGE, now_ns)
    status = msgspec.structs.replace(
        state.status(),
        recommendation=vpa.status.recommendation,
        # What stands there was made for the generation that it names.
        observed_generation=vpa.status.observed_generation,
    )
    return StatusChange(vpa, status) if status != vpa.status else None


class StatusWriter:
    """Writes statuses, a bounded number at once."""

    def __init__(
        self,
        ownership: Ownership,
        cache: KindCache[VerticalPodAutoscaler],
        workers: int = 10,
        *,
        is_ours: Callable[[str], bool] = lambda _vpa: True,
    ) -> None:
        self._ownership = ownership
        self._cache = cache
        self._is_ours = is_ours
        self._workers = workers
        self.failures: dict[str, str] = {}
        """Per VPA whose status could not be written last time: why."""

    async def write(self, changes: Iterable[StatusChange]) -> int:
        """Write all; a failure concerns its own VPA only and is tried again in the next loop."""
        self.failures = {}
        waiting = iter(list(changes))
        written = 0

        async def work() -> None:
            nonlocal written
            for change in waiting:
                written += await self._write(change)

        await asyncio.gather(*(work() for _ in range(self._workers)))
        return written

    async def _write(self, change: StatusChange) -> bool:
        meta = change.vpa.metadata
        if not self._is_ours(meta.key):
            return False  # another copy recommends for it meanwhile, from a history of its own
        operations = [{"op": "add", "path": "/status", "value": wire.to_builtins(change.status)}]
        try:
            with self._ownership.writing(self._ownership.share(meta.key)) as client:
                written = await client.patch(
                    VPAS,
                    meta.name,
                    meta.namespace,
                    operations,
                    how=PatchType.JSON,
                    preconditions=Preconditions(uid=meta.uid or None),
                    subresource="status",
                )
        except (errors.NotFound, errors.Fenced):
            return False  # deleted meanwhile, or not ours any more
        except errors.ClusterError as error:
            self.failures[meta.key] = str(error)
            log.warning("status of VPA %s is not written: %s", meta.key, error)
            return False
        self._cache.note_written(meta.namespace, written.metadata.resource_version)
        return True
