"""The objects of the server's store with their types, and what controllers write.

A read is of this moment. A write passes admission like that of any client, so it may take a while: a controller reads again
before its next write.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from trimtab.cluster import errors
from trimtab.cluster.resource import Json, Resource
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.json import wire
from trimtab.model.status import qualified
from trimtab_lab.apiserver.request import ApiResponse
from trimtab_lab.patches.merge import merge
from trimtab_lab.storage.codec import encode
from trimtab_lab.storage.store import Entry, ObjectStore, WatchCacheEvent

Key = tuple[str, str]
Request = Callable[[str, str, str, Mapping[str, str], bytes], Awaitable[ApiResponse]]
MANAGER = "kube-controller-manager"


class LabObject(Protocol):
    """An object of any kind with its metadata."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=LabObject)


def storage_of(resource: Resource[Any]) -> str:
    """Return the name under which the store has the objects of a resource."""
    return qualified(resource.plural, resource.group)


class Objects:
    """The stored objects, each decoded once per version."""

    def __init__(self, store: ObjectStore, request: Request, token: str) -> None:
        self.store = store
        self._request = request
        self._headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/json",
            "user-agent": MANAGER,
        }
        self._decoded: dict[str, tuple[Entry, Any]] = {}
        store.listen(self._forget)

    def _forget(self, _resource: str, change: WatchCacheEvent) -> None:
        if change.action == "DELETED":
            self._decoded.pop(change.entry.uid, None)

    def read(self, resource: Resource[T], entry: Entry) -> T:
        known = self._decoded.get(entry.uid)
        if known is None or known[0] is not entry:
            known = self._decoded[entry.uid] = (entry, wire.decode(entry.raw, resource.struct))
        obj: T = known[1]
        return obj

    def get(self, resource: Resource[T], key: Key) -> T | None:
        """Return an object by namespace and name, or None."""
        entry = self.store.get(storage_of(resource), "/".join(filter(None, key)))
        return None if entry is None else self.read(resource, entry)

    def all(self, resource: Resource[T], namespace: str = "") -> list[T]:
        return [
            self.read(resource, entry) for entry in self.store.resource(storage_of(resource)).all(namespace)
        ]

    def owned(self, resource: Resource[T], uid: str) -> list[T]:
        """Return the objects that an owner controls, by name."""
        storage = storage_of(resource)
        found = (
            self.read(resource, entry) for place, entry in self.store.dependents(uid) if place == storage
        )
        return [obj for obj in found if controller_uid(obj) == uid]

    def orphans(self, resource: Resource[T], namespace: str) -> list[T]:
        entries = self.store.resource(storage_of(resource)).all(namespace)
        found = (self.read(resource, entry) for entry in entries if not entry.is_deleting)
        return [obj for obj in found if not controller_uid(obj)]

    async def create(self, resource: Resource[T], body: Json, namespace: str) -> T:
        return wire.decode(await self._write("POST", resource.path(namespace), body), resource.struct)

    async def patch(self, resource: Resource[T], obj: T, body: Any, subresource: str | None = None) -> T:
        """Merge `body` into an object, with its uid as precondition."""
        path = resource.path(obj.metadata.namespace, obj.metadata.name, subresource)
        body = {**body, "metadata": {**body.get("metadata", {}), "uid": obj.metadata.uid}}
        written = await self._write("PATCH", path, body, "application/merge-patch+json")
        return wire.decode(written, resource.struct)

    async def write_status(self, resource: Resource[T], obj: T, status: Json) -> None:
        """Write the fields of a status that differ from the stored ones. A field with None is cleared."""
        entry = self.store.get(storage_of(resource), obj.metadata.key)
        before = entry.decoded().get("status", {}) if entry is not None else {}
        if merge(before, status) != before:
            await self.patch(resource, obj, {"status": status}, "status")

    async def delete(self, resource: Resource[T], obj: T) -> None:
        """Delete an object, unless it is gone or another one by now."""
        body = {"preconditions": {"uid": obj.metadata.uid}, "propagationPolicy": "Background"}
        with suppress(errors.NotFound, errors.Conflict):
            await self._write("DELETE", resource.path(obj.metadata.namespace, obj.metadata.name), body)

    async def _write(self, method: str, path: str, body: Json, media: str = "application/json") -> bytes:
        headers = {**self._headers, "content-type": media}
        response = await self._request(method, path, "", headers, encode(body))
        if response.status >= 400:
            raise errors.error_from_answer(f"{method} {path}", response.status, {}, response.body)
        return response.body


def controller_uid(obj: LabObject) -> str:
    """Return the uid of the object's controller, or an empty text."""
    return next((owner.uid for owner in obj.metadata.owner_references if owner.controller), "")
