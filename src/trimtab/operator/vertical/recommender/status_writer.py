"""VPA statuses: which ones differ from what is stored, and writing those."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from trimtab.cluster import errors
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer
from trimtab.cluster.client import PatchType, Preconditions
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.recommend.minor_changes import is_minor_change
from trimtab.model.json import wire
from trimtab.model.labels.selector import NOTHING
from trimtab.model.vpa.types import VerticalPodAutoscaler, VerticalPodAutoscalerStatus, VPAConditionType
from trimtab.operator.ownership import Ownership
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.recommender.feeder import UnsupportedConfig

log = logging.getLogger(__name__)
UNSUPPORTED = VPAConditionType.CONFIG_UNSUPPORTED
FETCHING_MESSAGE = "Usage of the past is being read from Prometheus"


@dataclass(frozen=True)
class StatusChange:
    """A VPA and the status it should have."""

    vpa: VerticalPodAutoscaler
    status: VerticalPodAutoscalerStatus


def change_of(
    state: VPAState,
    compat: VpaCompat = DEFAULT,
    unchanging: UnsupportedConfig | None = None,
    now_ns: int = 0,
    *,
    refused: str = "",
) -> StatusChange | None:
    """Return the status of a VPA that was recommended for, if it differs from the stored one by more than a little.

    `unchanging` says why no pod is changed by what is recommended, `refused` why pods stay whose replacements would not
    be admitted.
    """
    state.set_obstacle(VPAConditionType.REPLACEMENT_REFUSED, refused, now_ns)
    for kind in (VPAConditionType.CONFIG_DEPRECATED, VPAConditionType.FETCHING_HISTORY):
        state.conditions.pop(kind, None)
    if unchanging is None:
        state.conditions.pop(UNSUPPORTED, None)
    else:
        stored_condition = state.vpa.status.condition(UNSUPPORTED)
        if stored_condition is not None:  # recommending took it out; its transition time stays
            state.conditions[UNSUPPORTED] = stored_condition
        state.set_condition(UNSUPPORTED, True, unchanging.reason, unchanging.message, now_ns)
    status, stored = state.status(), state.vpa.status
    if status == stored or (compat.small_moves_wait and is_minor_change(stored, status)):
        return None
    return StatusChange(state.vpa, status)


def excluded_namespace(vpa: VerticalPodAutoscaler, own_namespace: str) -> UnsupportedConfig:
    """Return why a VPA in kube-system, or in our own namespace, changes no pod."""
    namespace = vpa.metadata.namespace
    hint = "" if namespace == own_namespace else "; start Trimtab with --include-kube-system to change them"
    return UnsupportedConfig(
        "NamespaceExcluded",
        f"VPA {vpa.key} recommends only: Trimtab changes no pods in namespace {namespace}{hint}",
    )


def inert_change(vpa: VerticalPodAutoscaler, why: UnsupportedConfig, now_ns: int) -> StatusChange | None:
    """Return the status of a VPA that can do nothing: it says why, and keeps the last recommendation."""
    state = VPAState(vpa, NOTHING)
    state.update(vpa, per_vpa=False)
    state.set_condition(UNSUPPORTED, True, why.reason, why.message, now_ns)
    state.conditions.pop(VPAConditionType.REPLACEMENT_REFUSED, None)
    return _with_kept_recommendation(state)


def waiting_change(vpa: VerticalPodAutoscaler, now_ns: int) -> StatusChange | None:
    """Return the status of a VPA whose history is on its way: as it was, and it says so."""
    state = VPAState(vpa, NOTHING)
    state.update(vpa, per_vpa=False)
    state.set_condition(VPAConditionType.FETCHING_HISTORY, True, "", FETCHING_MESSAGE, now_ns)
    return _with_kept_recommendation(state)


def _with_kept_recommendation(state: VPAState) -> StatusChange | None:
    """Return new conditions beside the stored recommendation, which keeps what it was made for."""
    stored = state.vpa.status
    status = msgspec.structs.replace(
        state.status(),
        recommendation=stored.recommendation,
        observed_generation=stored.observed_generation,
        observed_selector_hash=stored.observed_selector_hash,
    )
    return StatusChange(state.vpa, status) if status != stored else None


class StatusWriter:
    """Writes statuses, a bounded number at once."""

    def __init__(
        self,
        ownership: Ownership,
        cache: NamespacedInformer[VerticalPodAutoscaler],
        workers: int = 10,
        *,
        is_ours: Callable[[str], bool] = lambda _vpa: True,
        is_dry_run: bool = False,
    ) -> None:
        self._ownership = ownership
        self._cache = cache
        self._is_ours = is_ours
        self._workers = workers
        self._is_dry_run = is_dry_run
        self._told: dict[str, dict[str, dict[str, str]]] = {}
        """Per VPA what a dry run has logged."""
        self.failures: dict[str, str] = {}
        """Per VPA whose status could not be written last time: why."""

    async def write(self, changes: Iterable[StatusChange]) -> int:
        """Write all; a failure concerns its own VPA only and is tried again in the next loop."""
        self.failures = {}
        if self._is_dry_run:
            self._tell(list(changes))
            return 0
        waiting = iter(list(changes))
        written = 0

        async def work() -> None:
            nonlocal written
            for change in waiting:
                written += await self._write(change)

        await asyncio.gather(*(work() for _ in range(self._workers)))
        return written

    def _tell(self, changes: list[StatusChange]) -> None:
        """Log the targets of a dry run, each once: a live updater would act on a status."""
        before = self._told
        self._told = {change.vpa.key: _targets(change.status) for change in changes}
        for vpa, targets in self._told.items():
            if targets and before.get(vpa) != targets:
                log.info("dry run: would recommend", extra={"facts": {"vpa": vpa, "targets": targets}})

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


def _targets(status: VerticalPodAutoscalerStatus) -> dict[str, dict[str, str]]:
    """Return the recommended targets, by container and resource."""
    found = status.recommendation.container_recommendations if status.recommendation is not None else ()
    return {
        container.container_name: {name: str(amount) for name, amount in container.target.items()}
        for container in found
    }
