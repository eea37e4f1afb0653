"""ControllerRevisions: the templates that StatefulSets and DaemonSets have had, so that old ones can be used again."""

from typing import Any

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.resource import Resource
from trimtab.lab.controllers.base.kinds import ControllerRevision, PodSet, owner_reference
from trimtab.lab.controllers.base.pods import (
    REVISION_HASH_LABEL,
    same_template,
    template_hash,
)
from trimtab.lab.controllers.base.write_through_cache import WriteThroughCache


class Revisions:
    """The history of one kind of workload."""

    def __init__(
        self, clock: Clock, mirror: WriteThroughCache[ControllerRevision], resource: Resource[PodSet]
    ) -> None:
        self._clock = clock
        self._mirror = mirror
        self._resource = resource

    async def current(self, one: PodSet) -> ControllerRevision:
        """Return the revision of the template as it is now, made if it is new."""
        known = self._mirror.owned(one.metadata.uid)
        latest = max((revision.revision for revision in known), default=0)
        same = [r for r in known if same_template(template_of(r), one.spec.template)]
        if not same:
            return await self._create(one, latest + 1)
        found = max(same, key=lambda revision: revision.revision)
        if found.revision < latest:
            # Going back to an old template makes it the newest again.
            found = await self._mirror.patch(found, {"revision": latest + 1})
        return found

    def find(self, one: PodSet, name: str) -> ControllerRevision | None:
        """Return a revision by name."""
        return next((r for r in self._mirror.owned(one.metadata.uid) if r.metadata.name == name), None)

    async def clean_up(self, one: PodSet, in_use: set[str]) -> None:
        """Delete the oldest revisions that no pod uses, beyond the history that is to be kept."""
        spare = [r for r in self._mirror.owned(one.metadata.uid) if r.metadata.name not in in_use]
        spare.sort(key=lambda revision: revision.revision)
        for revision in spare[: max(len(spare) - one.spec.revision_history_limit, 0)]:
            await self._mirror.delete(revision, self._clock.now())

    async def _create(self, one: PodSet, number: int) -> ControllerRevision:
        collisions = one.status.collision_count
        while True:
            name_hash = template_hash(one.spec.template, collisions)
            try:
                return await self._mirror.create(
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ControllerRevision",
                        "metadata": {
                            "name": f"{one.metadata.name}-{name_hash}",
                            "labels": {REVISION_HASH_LABEL: name_hash},
                            "ownerReferences": [owner_reference(self._resource, one.metadata)],
                        },
                        "data": {"spec": {"template": {**one.spec.template, "$patch": "replace"}}},
                        "revision": number,
                    },
                    one.metadata.namespace,
                )
            except errors.AlreadyExists:
                collisions += 1


def template_of(revision: ControllerRevision) -> dict[str, Any]:
    """Return the template that a revision keeps."""
    template = dict((revision.data.get("spec") or {}).get("template") or {})
    template.pop("$patch", None)
    return template
