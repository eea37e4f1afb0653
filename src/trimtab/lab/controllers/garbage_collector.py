"""The garbage collector: dependents follow their owners, and namespaces are emptied before they go.

It listens to the store and works on a queue of uids. Background deletion removes dependents after the owner,
foreground before it, orphaning cuts the tie. The same task empties namespaces that are being deleted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from trimtab.lab.apiserver.errors import StatusError
from trimtab.lab.apiserver.request import RequestInfo, RequestUser, ResourceRequest
from trimtab.lab.handlers.delete import FOREGROUND, ORPHAN, DeleteHandler, DeletionOptions
from trimtab.lab.resources.registry import Registry
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import Entry, ObjectStore
from trimtab.lab.storage.watch_cache import WatchCacheEvent

#: Seconds until a deletion that was refused is tried again.
RETRY_SECONDS = 10.0
LOG = logging.getLogger(__name__)
USER = RequestUser("system:serviceaccount:kube-system:generic-garbage-collector", ("system:masters",))


class GarbageCollector:
    """Deletes what nobody owns any more."""

    def __init__(self, store: ObjectStore, registry: Registry, deletion: DeleteHandler) -> None:
        self._store = store
        self._registry = registry
        self._deletion = deletion
        self._jobs: dict[tuple[str, str], Callable[[], Awaitable[None]]] = {}
        self._wake = asyncio.Event()
        store.listen(self._notice)

    def _notice(self, resource: str, change: WatchCacheEvent) -> None:
        """Queue what a change makes necessary; each object waits in the queue once."""
        entry = change.entry
        if change.action == "DELETED":
            for _, dependent in self._store.dependents(entry.uid):
                self._queue("orphan?", dependent.uid, self._collect)
            for owner in entry.owners:
                self._queue("owner", owner, self._finish_owner)
            if entry.namespace:
                self._queue_namespace(entry.namespace)
            return
        if entry.owners and (change.previous is None or change.previous.owners != entry.owners):
            self._queue("orphan?", entry.uid, self._collect)
        if entry.is_deleting:
            self._queue("owner", entry.uid, self._finish_owner)
            if resource == "namespaces":
                self._queue_namespace(entry.name)

    def _queue_namespace(self, name: str) -> None:
        namespace = self._store.get("namespaces", name)
        if namespace is not None and namespace.is_deleting:
            self._queue("namespace", name, self._empty_namespace)

    def _queue(self, kind: str, key: str, work: Callable[[str], Awaitable[None]]) -> None:
        self._jobs.setdefault((kind, key), lambda: work(key))
        self._wake.set()

    async def run(self) -> None:
        """Work through the queue for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._jobs:
                key = next(iter(self._jobs))
                try:
                    await self._jobs.pop(key)()
                except Exception:  # one odd object must not stop the collection of the others
                    LOG.exception("collecting %s %s", *key)

    async def _collect(self, uid: str) -> None:
        """Delete an object none of whose owners exists."""
        found = self._store.by_uid(uid)
        if found is None:
            return
        resource, entry = found
        references = entry.decoded()["metadata"].get("ownerReferences") or ()
        if not references or not all(self._is_absent(ref, entry) for ref in references):
            return
        await self._delete(resource, entry, "Background")

    def _is_absent(self, reference: JsonObject, entry: Entry) -> bool:
        """Tell whether an owner is gone for sure; kinds that are not served cannot be looked up."""
        owner = self._store.by_uid(reference.get("uid", ""))
        if owner is not None:
            # An owner in another namespace is not one, as upstream rules.
            return bool(owner[1].namespace and owner[1].namespace != entry.namespace)
        group = reference.get("apiVersion", "").rpartition("/")[0]
        return self._registry.by_kind(group, reference.get("kind", "")) is not None

    async def _finish_owner(self, uid: str) -> None:
        """Do what the finalizers of a deleted owner ask for."""
        found = self._store.by_uid(uid)
        if found is None or not found[1].is_deleting:
            return
        resource, entry = found
        finalizers = entry.decoded()["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            for where, dependent in self._store.dependents(uid):
                self._cut(where, dependent, uid)
            self._remove_finalizer(resource, uid, ORPHAN)
        elif FOREGROUND in finalizers:
            await self._delete_dependents(uid)
            if not any(_blocks(one, uid) for _, one in self._store.dependents(uid)):
                self._remove_finalizer(resource, uid, FOREGROUND)

    async def _delete_dependents(self, uid: str) -> None:
        for where, dependent in self._store.dependents(uid):
            if not dependent.is_deleting:
                policy = "Foreground" if self._store.dependents(dependent.uid) else "Background"
                await self._delete(where, dependent, policy)

    def _cut(self, storage: str, entry: Entry, uid: str) -> None:
        obj = entry.decoded()
        meta = obj["metadata"]
        meta["ownerReferences"] = [ref for ref in meta["ownerReferences"] if ref.get("uid") != uid]
        if not meta["ownerReferences"]:
            del meta["ownerReferences"]
        self._store.commit(storage, obj, entry.fields)

    def _remove_finalizer(self, storage: str, uid: str, name: str) -> None:
        found = self._store.by_uid(uid)
        if found is None:
            return
        obj = found[1].decoded()
        meta = obj["metadata"]
        meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != name]
        if meta["finalizers"]:
            self._store.commit(storage, obj, found[1].fields)
            return
        del meta["finalizers"]
        if meta.get("deletionGracePeriodSeconds"):
            self._store.commit(storage, obj, found[1].fields)
        else:
            self._store.remove(storage, found[1].key, obj)

    async def _delete(self, storage: str, entry: Entry, policy: str) -> None:
        resource = self._registry.by_storage(storage)
        if resource is None:
            return
        info = RequestInfo(
            resource.group, resource.storage_version, entry.namespace, resource.plural, entry.name, "", True
        )
        headers = {"accept": "application/json"}
        request = ResourceRequest("DELETE", "", {}, headers, user=USER, resource=resource, info=info)
        try:
            await self._deletion.delete_object(request, DeletionOptions(propagation=policy, uid=entry.uid))
        except StatusError as problem:
            if problem.code not in (404, 409):
                # A webhook may refuse or be away; what cannot be deleted now is tried again.
                loop = asyncio.get_running_loop()
                loop.call_later(RETRY_SECONDS, self._queue, "orphan?", entry.uid, self._collect)

    async def _empty_namespace(self, name: str) -> None:
        """Delete everything in a namespace, then let it go."""
        namespace = self._store.get("namespaces", name)
        if namespace is None or not namespace.is_deleting:
            return
        left = 0
        for objects in self._store.resources():
            for entry in objects.all(name) if objects.resource != "namespaces" else ():
                if not entry.is_deleting:
                    await self._delete(objects.resource, entry, "Background")
            left += len(objects.all(name)) if objects.resource != "namespaces" else 0
        if left:
            return
        obj = namespace.decoded()
        obj["spec"] = {}
        current = self._store.get("namespaces", name)
        if current is namespace and not obj["metadata"].get("finalizers"):
            self._store.remove("namespaces", name, obj)


def _blocks(entry: Entry, uid: str) -> bool:
    references = entry.decoded()["metadata"].get("ownerReferences") or ()
    return any(ref.get("uid") == uid and ref.get("blockOwnerDeletion") for ref in references)
