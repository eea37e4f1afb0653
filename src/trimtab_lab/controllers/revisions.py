"""ControllerRevisions: the pod templates that a StatefulSet or DaemonSet has had."""

from typing import Any

from trimtab.cluster import errors
from trimtab.cluster.resource import Resource
from trimtab_lab.controllers.kinds import REVISIONS, ControllerRevision, LabPod, LabWorkload, owner_reference
from trimtab_lab.controllers.objects import Objects
from trimtab_lab.controllers.pods import REVISION_HASH_LABEL, is_same_template, template_hash


class RevisionHistory:
    """The ControllerRevisions of one kind of workload."""

    def __init__(self, objects: Objects, resource: Resource[LabWorkload]) -> None:
        self._objects = objects
        self._resource = resource

    async def current(self, workload: LabWorkload) -> ControllerRevision:
        """Return the revision of the current template. Create it if the template is new."""
        history = self._objects.owned(REVISIONS, workload.metadata.uid)
        latest = max((revision.revision for revision in history), default=0)
        same = [
            revision
            for revision in history
            if is_same_template(revision_template(revision), workload.spec.template)
        ]
        if not same:
            return await self._create(workload, latest + 1)
        current = max(same, key=lambda revision: revision.revision)
        if current.revision < latest:
            # Going back to an old template makes it the newest again.
            current = await self._objects.patch(REVISIONS, current, {"revision": latest + 1})
        return current

    def find(self, workload: LabWorkload, name: str) -> ControllerRevision | None:
        history = self._objects.owned(REVISIONS, workload.metadata.uid)
        return next((revision for revision in history if revision.metadata.name == name), None)

    async def clean_up(self, workload: LabWorkload, in_use: set[str]) -> None:
        """Delete the oldest unused revisions beyond `revisionHistoryLimit`."""
        unused = [
            revision
            for revision in self._objects.owned(REVISIONS, workload.metadata.uid)
            if revision.metadata.name not in in_use
        ]
        unused.sort(key=lambda revision: revision.revision)
        for revision in unused[: max(len(unused) - workload.spec.revision_history_limit, 0)]:
            await self._objects.delete(REVISIONS, revision)

    async def _create(self, workload: LabWorkload, number: int) -> ControllerRevision:
        collisions = workload.status.collision_count
        while True:
            name_hash = template_hash(workload.spec.template, collisions)
            body = {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {
                    "name": f"{workload.metadata.name}-{name_hash}",
                    "labels": {REVISION_HASH_LABEL: name_hash},
                    "ownerReferences": [owner_reference(self._resource, workload.metadata)],
                },
                "data": {"spec": {"template": {**workload.spec.template, "$patch": "replace"}}},
                "revision": number,
            }
            try:
                return await self._objects.create(REVISIONS, body, workload.metadata.namespace)
            except errors.AlreadyExists:
                collisions += 1


def revision_template(revision: ControllerRevision) -> dict[str, Any]:
    template = dict((revision.data.get("spec") or {}).get("template") or {})
    template.pop("$patch", None)
    return template


def pod_revision(pod: LabPod) -> str:
    """Return the revision that a pod was created from, as its label names it."""
    return pod.metadata.labels.get(REVISION_HASH_LABEL, "")
