"""Delete: preconditions, grace, finalizers and what becomes of dependents."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from trimtab.clock import Clock
from trimtab.lab.admission import AdmissionAttributes, AdmissionChain
from trimtab.lab.apiserver.errors import (
    bad_request,
    conflict,
    invalid,
    not_found,
    unsupported_value,
)
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse, RequestPath
from trimtab.lab.handlers.bodies import decode_any
from trimtab.lab.handlers.get_list import ReadHandler, key_of
from trimtab.lab.handlers.views import choose_view
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.schemas.prune import fit
from trimtab.lab.schemas.shapes import META, shape_of_type
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import Entry, ObjectStore
from trimtab.model.times import format_time

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
#: Seconds of grace beyond which nobody waits; a larger number would leave the calendar.
LONGEST = 100 * 365 * 86_400
POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True)
class DeletionOptions:
    """How an object is to be deleted."""

    grace_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    version: str = ""

    @classmethod
    def parse(cls, request: ApiRequest) -> "DeletionOptions":
        """Read the options from the body, or else from the query."""
        body = _read_body(request)
        conditions: Any = body.get("preconditions") or {}
        request.query.setdefault("dryRun", []).extend(body.get("dryRun") or ())
        return cls(
            read_grace(body.get("gracePeriodSeconds", request.number("gracePeriodSeconds"))),
            _propagation(request, body),
            conditions.get("uid", ""),
            conditions.get("resourceVersion", ""),
        )


def _read_body(request: ApiRequest) -> JsonObject:
    body = decode_any(request) if request.body else {}
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request(f"the body of a delete is DeleteOptions, not {body.get('kind')}")
    fit(body, shape_of_type(META + "DeleteOptions"), "DeleteOptions", "v1")
    return body


def read_grace(seconds: int | None) -> int | None:
    """Return a grace period within what can be waited for."""
    if seconds is None:
        return None
    return (
        min(max(seconds, 1), LONGEST) if seconds else 0
    )  # upstream reads a negative grace as 1: as short as can be


def _propagation(request: ApiRequest, body: JsonObject) -> str:
    policy = body.get("propagationPolicy") or request.option("propagationPolicy")
    if policy and policy not in POLICIES:
        cause = unsupported_value("propagationPolicy", policy, (*POLICIES, "nil"))
        raise invalid("DeleteOptions", "meta.k8s.io", "", [cause])
    if policy:
        return str(policy)
    orphans = body.get("orphanDependents")
    if orphans is None and "orphanDependents" in request.query:
        orphans = request.flag("orphanDependents")
    return "" if orphans is None else "Orphan" if orphans else "Background"


class DeleteHandler:
    """The deleting verbs of every resource."""

    def __init__(
        self, clock: Clock, store: ObjectStore, admission: AdmissionChain, reads: ReadHandler
    ) -> None:
        self._clock = clock
        self._store = store
        self._admission = admission
        self._reads = reads

    async def delete(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Delete one object, or begin to."""
        options = DeletionOptions.parse(request)
        entry = await self.delete_object(request, resource, target, options)
        view = choose_view(request, resource, target.version, self._clock.now)
        is_gone = self._store.get(resource.storage, entry.key) is None
        if is_gone and not resource.strategy.returns_deleted:
            details: JsonObject = {"name": entry.name, "kind": resource.plural, "uid": entry.uid}
            if resource.group:
                details["group"] = resource.group
            return ApiResponse.of(
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": details,
                }
            )
        return ApiResponse(200, view.one(entry))

    async def delete_object(
        self, request: ApiRequest, resource: ServedResource, target: RequestPath, options: DeletionOptions
    ) -> Entry:
        """Delete an object if the preconditions hold; return it as it is now, or was last."""
        key = key_of(resource, target)
        found = self._store.get(resource.storage, key)
        if found is None:
            raise not_found(resource.plural, resource.group, target.name)
        self._check(resource, found, options)
        await self._admission.validate(
            AdmissionAttributes("DELETE", resource, target, None, found.decoded(), request)
        )
        found = self._store.get(resource.storage, key)
        if found is None:
            raise not_found(resource.plural, resource.group, target.name)
        self._check(resource, found, options)
        return self._begin(request, resource, found, options)

    @staticmethod
    def _check(resource: ServedResource, entry: Entry, options: DeletionOptions) -> None:
        for what, wanted, seen in (
            ("UID", options.uid, entry.uid),
            ("ResourceVersion", options.version, str(entry.version)),
        ):
            if wanted and wanted != seen:
                happened = "deleted and then recreated" if what == "UID" else "modified"
                why = (
                    f"the {what} in the precondition ({wanted}) does not match the {what} in record ({seen}). "
                    f"The object might have been {happened}"
                )
                raise conflict(resource.kind, resource.group, entry.name, why)

    def _begin(
        self, request: ApiRequest, resource: ServedResource, entry: Entry, options: DeletionOptions
    ) -> Entry:
        obj = entry.decoded()
        meta = obj["metadata"]
        _set_propagation(
            meta, options.propagation or resource.strategy.default_propagation, options.propagation
        )
        grace = resource.strategy.grace_seconds(obj, options.grace_seconds)
        if entry.is_deleting:
            before = meta.get("deletionGracePeriodSeconds", 0)
            grace = min(grace, before)
            if grace < before:
                moment = self._clock.now() + timedelta(seconds=grace)
                meta.update(deletionTimestamp=format_time(moment), deletionGracePeriodSeconds=grace)
        is_held = bool(meta.get("finalizers")) or resource.strategy.is_held(obj)
        if request.is_dry_run:
            return entry
        if not grace and not is_held:
            if resource.strategy.is_graceful:
                meta.update(deletionTimestamp=format_time(self._clock.now()), deletionGracePeriodSeconds=0)
                meta["generation"] = meta.get("generation", 0) + (not entry.is_deleting)
            return self._store.remove(resource.storage, entry.key, obj)
        if not entry.is_deleting:
            moment = self._clock.now() + timedelta(seconds=grace)
            meta.update(deletionTimestamp=format_time(moment), deletionGracePeriodSeconds=grace)
            if "generation" in meta:
                meta["generation"] += 1
            resource.strategy.mark_deleted(obj)
        if obj == entry.decoded():
            return entry
        return self._store.commit(resource.storage, obj, resource.strategy.fields(obj))

    async def delete_collection(
        self, request: ApiRequest, resource: ServedResource, target: RequestPath
    ) -> ApiResponse:
        """Delete every object that matches."""
        options = DeletionOptions.parse(request)
        page = self._reads.page(request, resource, target)
        deleted: list[Entry] = []
        for entry in page.entries:
            place = RequestPath(
                target.group, target.version, entry.namespace, target.resource, entry.name, "", True
            )
            if self._store.get(resource.storage, entry.key) is not None:
                deleted.append(await self.delete_object(request, resource, place, options))
        view = choose_view(request, resource, target.version, self._clock.now)
        return ApiResponse(200, view.many(deleted, page.meta))


def _set_propagation(meta: JsonObject, policy: str, asked: str) -> None:
    """Set the finalizer that makes the collector honour a policy."""
    finalizers: list[str] = list(meta.get("finalizers") or ())
    if not asked and (FOREGROUND in finalizers or ORPHAN in finalizers):
        return  # a finalizer set earlier decides when the request does not
    kept = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)]
    extra = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
    if kept + extra:
        meta["finalizers"] = kept + extra
    else:
        meta.pop("finalizers", None)
