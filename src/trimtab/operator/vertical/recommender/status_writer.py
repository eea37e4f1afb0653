"""Writes VPA statuses to the API server."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from trimtab.cluster import errors
from trimtab.cluster.client import PatchType, Preconditions
from trimtab.model.author import Author
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscalerStatus
from trimtab.operator.vertical.kinds import kind_of
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.status_builder import StatusChange
from trimtab.operator.vertical.vpa_cache import VpaCache

log = logging.getLogger(__name__)


class StatusWriter:
    """Writes statuses with a limited number of workers."""

    def __init__(
        self,
        states: ShardedClusterStates,
        cache: VpaCache,
        workers: int = 10,
        *,
        is_dry_run: bool = False,
        author_for: Callable[[str], Author] = lambda _key: Author(),
    ) -> None:
        self._states = states
        self._cache = cache
        self._workers = workers
        self._is_dry_run = is_dry_run
        self._author_for = author_for
        self._logged: dict[str, dict[str, dict[str, str]]] = {}
        """The targets of each VPA that a dry run has logged."""
        self.failures: dict[str, str] = {}
        """Why the last write of a VPA's status failed."""

    async def write(self, changes: Iterable[StatusChange]) -> None:
        """Write all statuses. The next step repeats failed writes."""
        self.failures = {}
        if self._is_dry_run:
            self._log_dry_run(list(changes))
            return
        waiting = iter(list(changes))

        async def work() -> None:
            for change in waiting:
                await self._write(change)

        await asyncio.gather(*(work() for _ in range(self._workers)))

    def _log_dry_run(self, changes: list[StatusChange]) -> None:
        """Log changed targets instead of writing them."""
        before = self._logged
        self._logged = {change.vpa.key: _targets(change.status) for change in changes}
        for vpa, targets in self._logged.items():
            if targets and before.get(vpa) != targets:
                log.info("dry run: would recommend", extra={"facts": {"vpa": vpa, "targets": targets}})

    async def _write(self, change: StatusChange) -> None:
        meta = change.vpa.metadata
        if not self._states.holds(meta.namespaced_name):
            return  # another replica recommends for it now
        operations = [{"op": "add", "path": "/status", "value": wire.to_builtins(change.status)}]
        try:
            with self._states.writing(meta.namespaced_name) as client:
                written = await client.patch(
                    kind_of(change.vpa.api_version).vpas,
                    meta.name,
                    meta.namespace,
                    operations,
                    how=PatchType.JSON,
                    preconditions=Preconditions(meta.uid or None, meta.resource_version or None),
                    subresource="status",
                )
        except (errors.NotFound, errors.Fenced):
            return  # deleted, or not ours any more
        except errors.Conflict as error:
            # The next step decides on the newer object, which a user or another replica wrote.
            log.info("status of VPA %s is not written: %s", meta.key, error)
        except errors.ClusterError as error:
            self.failures[meta.key] = str(error)
            log.warning("status of VPA %s is not written: %s", meta.key, error)
        else:
            facts = {
                "vpa": meta.key,
                **self._author_for(meta.key).facts,
                "baseVersion": meta.resource_version,
            }
            log.debug("status written", extra={"facts": facts})
            self._cache.note_written(change.vpa, written.metadata.resource_version)


def _targets(status: VerticalPodAutoscalerStatus) -> dict[str, dict[str, str]]:
    recommendation = status.recommendation
    return {
        container.container_name: {name: str(amount) for name, amount in container.target.items()}
        for container in (recommendation.container_recommendations if recommendation is not None else ())
    }
