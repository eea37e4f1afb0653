"""The garbage collector: deletes dependents of deleted owners and empties terminating namespaces.

It runs inside the lab's API server, subscribes to the store and processes a queue of uids. Background deletion removes
dependents after the owner, foreground deletion before it, and orphaning removes their owner reference.
"""

from collections.abc import Awaitable, Callable

from trimtab.clock import Clock
from trimtab.model.status import StatusError
from trimtab_lab.apiserver.request import RequestInfo, RequestUser, ResourceRequest
from trimtab_lab.controllers.objects import Key
from trimtab_lab.controllers.work_queue import WorkQueue
from trimtab_lab.handlers.delete import FOREGROUND, ORPHAN, DeleteHandler, DeletionOptions
from trimtab_lab.kinds.registry import Registry
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.storage.store import Entry, ObjectStore, WatchCacheEvent

#: Seconds until a rejected deletion is retried.
RETRY_SECONDS = 10.0
USER = RequestUser("system:serviceaccount:kube-system:generic-garbage-collector", ("system:masters",))


class GarbageCollector:
    """Deletes objects whose owners are gone, and the content of terminating namespaces."""

    def __init__(self, clock: Clock, store: ObjectStore, registry: Registry, deletion: DeleteHandler) -> None:
        self._store = store
        self._registry = registry
        self._deletion = deletion
        self._work: dict[str, Callable[[str], Awaitable[None]]] = {
            "dependent": self._collect,
            "owner": self._finish_owner,
            "namespace": self._empty_namespace,
        }
        #: What to do, and the uid or namespace that it is about.
        self.queue = WorkQueue("garbage collection", clock, self._reconcile)
        store.listen(self._on_change)

    async def _reconcile(self, key: Key) -> None:
        await self._work[key[0]](key[1])

    def _on_change(self, resource: str, change: WatchCacheEvent) -> None:
        """Enqueue the objects that a change concerns, each once."""
        entry = change.entry
        if change.action == "DELETED":
            for _, dependent in self._store.dependents(entry.uid):
                self.queue.add(("dependent", dependent.uid))
            for owner in entry.owners:
                self.queue.add(("owner", owner))
            if entry.namespace:
                self._enqueue_namespace(entry.namespace)
            return
        if entry.owners and (change.previous is None or change.previous.owners != entry.owners):
            self.queue.add(("dependent", entry.uid))
        if entry.is_deleting:
            self.queue.add(("owner", entry.uid))
            if resource == "namespaces":
                self._enqueue_namespace(entry.name)

    def _enqueue_namespace(self, name: str) -> None:
        namespace = self._store.get("namespaces", name)
        if namespace is not None and namespace.is_deleting:
            self.queue.add(("namespace", name))

    async def _collect(self, uid: str) -> None:
        """Delete an object if all its owners are gone."""
        stored = self._store.by_uid(uid)
        if stored is None:
            return
        resource, entry = stored
        references = entry.decoded()["metadata"].get("ownerReferences") or ()
        if not references or not all(self._is_absent(ref, entry) for ref in references):
            return
        await self._delete(resource, entry, "Background")

    def _is_absent(self, reference: JsonObject, entry: Entry) -> bool:
        """Return whether an owner is gone. Owners of a kind that is not served count as present."""
        owner = self._store.by_uid(reference.get("uid", ""))
        if owner is not None:
            # As upstream, an owner in another namespace counts as absent.
            return bool(owner[1].namespace and owner[1].namespace != entry.namespace)
        group = reference.get("apiVersion", "").rpartition("/")[0]
        return self._registry.by_kind(group, reference.get("kind", "")) is not None

    async def _finish_owner(self, uid: str) -> None:
        """Orphan or delete the dependents of a terminating owner, as its finalizers say."""
        stored = self._store.by_uid(uid)
        if stored is None or not stored[1].is_deleting:
            return
        resource, entry = stored
        finalizers = entry.decoded()["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            for dependent_resource, dependent in self._store.dependents(uid):
                self._orphan(dependent_resource, dependent, uid)
            self._remove_finalizer(resource, uid, ORPHAN)
        elif FOREGROUND in finalizers:
            await self._delete_dependents(uid)
            if not any(_blocks(dependent, uid) for _, dependent in self._store.dependents(uid)):
                self._remove_finalizer(resource, uid, FOREGROUND)

    async def _delete_dependents(self, uid: str) -> None:
        for resource, dependent in self._store.dependents(uid):
            if not dependent.is_deleting:
                policy = "Foreground" if self._store.dependents(dependent.uid) else "Background"
                await self._delete(resource, dependent, policy)

    def _orphan(self, storage: str, entry: Entry, uid: str) -> None:
        obj = entry.decoded()
        meta = obj["metadata"]
        meta["ownerReferences"] = [ref for ref in meta["ownerReferences"] if ref.get("uid") != uid]
        if not meta["ownerReferences"]:
            del meta["ownerReferences"]
        self._store.commit(storage, obj, entry.fields)

    def _remove_finalizer(self, storage: str, uid: str, name: str) -> None:
        stored = self._store.by_uid(uid)
        if stored is None:
            return
        entry = stored[1]
        obj = entry.decoded()
        meta = obj["metadata"]
        meta["finalizers"] = [finalizer for finalizer in meta.get("finalizers") or () if finalizer != name]
        is_held = bool(meta["finalizers"])
        if not is_held:
            del meta["finalizers"]
        if is_held or meta.get("deletionGracePeriodSeconds"):
            self._store.commit(storage, obj, entry.fields)
        else:
            self._store.remove(storage, entry.key, obj)

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
                # A webhook may reject the deletion or be unavailable.
                self.queue.add_after(("dependent", entry.uid), RETRY_SECONDS, is_deadline=True)

    async def _empty_namespace(self, name: str) -> None:
        """Delete everything in a namespace, then the namespace."""
        namespace = self._store.get("namespaces", name)
        if namespace is None or not namespace.is_deleting:
            return
        content = [objects for objects in self._store.resources() if objects.resource != "namespaces"]
        for objects in content:
            for entry in objects.all(name):
                if not entry.is_deleting:
                    await self._delete(objects.resource, entry, "Background")
        if any(objects.all(name) for objects in content):
            return
        obj = namespace.decoded()
        obj["spec"] = {}
        current = self._store.get("namespaces", name)
        if current is namespace and not obj["metadata"].get("finalizers"):
            self._store.remove("namespaces", name, obj)


def _blocks(entry: Entry, uid: str) -> bool:
    references = entry.decoded()["metadata"].get("ownerReferences") or ()
    return any(ref.get("uid") == uid and ref.get("blockOwnerDeletion") for ref in references)
