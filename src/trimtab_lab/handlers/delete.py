"""Delete: preconditions, grace, finalizers and the propagation to dependents."""

from dataclasses import dataclass, replace
from datetime import timedelta

from trimtab.model.status import bad_request, conflict, invalid
from trimtab.model.times import format_time
from trimtab_lab.admission import AdmissionAttributes
from trimtab_lab.apiserver.errors import unsupported_value
from trimtab_lab.apiserver.request import ApiRequest, ApiResponse, ResourceRequest
from trimtab_lab.handlers.bodies import decode_any
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.read import ReadHandler
from trimtab_lab.handlers.views import choose_view
from trimtab_lab.kinds.registry import ServedResource
from trimtab_lab.schemas.shapes import META, prune, shape_of_type
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.storage.store import Entry

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
#: Longer grace periods are cut to this number of seconds; larger numbers would leave the calendar.
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
        body = decode_any(request) if request.body else {}
        if body.get("kind", "DeleteOptions") != "DeleteOptions":
            raise bad_request(f"the body of a delete is DeleteOptions, not {body.get('kind')}")
        prune(body, shape_of_type(META + "DeleteOptions"), "DeleteOptions", "v1")
        body.setdefault("gracePeriodSeconds", request.number("gracePeriodSeconds"))
        return replace(cls.of(request, body), propagation=_propagation(request, body))

    @classmethod
    def of(cls, request: ApiRequest, body: JsonObject) -> "DeletionOptions":
        """Return the options in a `DeleteOptions` body. Its dryRun is added to the query."""
        conditions = body.get("preconditions") or {}
        if body.get("dryRun"):
            request.query.setdefault("dryRun", []).extend(body["dryRun"])
        return cls(
            _limit_grace(body.get("gracePeriodSeconds")),
            body.get("propagationPolicy", ""),
            conditions.get("uid", ""),
            conditions.get("resourceVersion", ""),
        )

    def check(self, resource: ServedResource, entry: Entry) -> None:
        """Reject the deletion if its preconditions do not hold."""
        for what, wanted, actual, happened in (
            ("UID", self.uid, entry.uid, "deleted and then recreated"),
            ("ResourceVersion", self.version, str(entry.version), "modified"),
        ):
            if wanted and wanted != actual:
                reason = (
                    f"the {what} in the precondition ({wanted}) does not match the {what} in record ({actual}). "
                    f"The object might have been {happened}"
                )
                raise conflict(resource.kind, resource.group, entry.name, reason)


def _limit_grace(seconds: int | None) -> int | None:
    if not seconds:
        return seconds
    return min(max(seconds, 1), LONGEST)  # upstream reads a negative grace as the shortest, 1


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
    """The verbs delete and deletecollection."""

    def __init__(self, context: HandlerContext, reads: ReadHandler) -> None:
        self._context = context
        self._store = context.store
        self._reads = reads

    async def delete(self, request: ResourceRequest) -> ApiResponse:
        """Delete one object, or mark it as deleted."""
        resource = request.resource
        entry = await self.delete_object(request, DeletionOptions.parse(request))
        response = self._context.respond(request, entry)
        if resource.strategy.returns_deleted or self._store.get(resource.storage, entry.key) is not None:
            return response
        details = {"name": entry.name, "kind": resource.plural, "uid": entry.uid}
        if resource.group:
            details["group"] = resource.group
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return ApiResponse.of({**success, "details": details})

    async def delete_object(self, request: ResourceRequest, options: DeletionOptions) -> Entry:
        """Delete an object if the preconditions hold, and return its last state."""
        entry = self._context.get(request)
        options.check(request.resource, entry)
        await self._context.admission.validate(AdmissionAttributes("DELETE", request, None, entry.decoded()))
        entry = self._context.get(request)
        options.check(request.resource, entry)
        return self._begin(request, entry, options)

    def _begin(self, request: ResourceRequest, entry: Entry, options: DeletionOptions) -> Entry:
        storage, strategy = request.resource.storage, request.resource.strategy
        obj = entry.decoded()
        meta = obj["metadata"]
        _set_propagation(meta, options.propagation or strategy.default_propagation, options.propagation)
        grace = strategy.grace_seconds(obj, options.grace_seconds)
        if entry.is_deleting:
            before = meta.get("deletionGracePeriodSeconds", 0)
            grace = min(grace, before)
            if grace < before:
                self._set_deadline(meta, grace)
        is_held = bool(meta.get("finalizers")) or strategy.is_held(obj)
        if request.is_dry_run:
            return entry
        if not grace and not is_held:
            if strategy.is_graceful:
                self._set_deadline(meta, 0)
                meta["generation"] = meta.get("generation", 0) + (not entry.is_deleting)
            return self._store.remove(storage, entry.key, obj)
        if not entry.is_deleting:
            self._set_deadline(meta, grace)
            if "generation" in meta:
                meta["generation"] += 1
            strategy.mark_deleted(obj)
        if obj == entry.decoded():
            return entry
        return self._store.commit(storage, obj, strategy.fields(obj))

    def _set_deadline(self, meta: JsonObject, grace: int) -> None:
        deadline = self._context.clock.now() + timedelta(seconds=grace)
        meta.update(deletionTimestamp=format_time(deadline), deletionGracePeriodSeconds=grace)

    async def delete_collection(self, request: ResourceRequest) -> ApiResponse:
        """Delete every object that matches."""
        options = DeletionOptions.parse(request)
        page = self._reads.page(request)
        deleted: list[Entry] = []
        for entry in page.entries:
            if self._store.get(request.resource.storage, entry.key) is not None:
                info = replace(request.info, namespace=entry.namespace, name=entry.name)
                deleted.append(await self.delete_object(replace(request, info=info), options))
        view = choose_view(request, self._context.clock.now)
        return ApiResponse(200, view.render_list(deleted, page.meta))


def _set_propagation(meta: JsonObject, policy: str, requested: str) -> None:
    """Set the finalizer that makes the garbage collector follow a policy."""
    finalizers: list[str] = list(meta.get("finalizers") or ())
    if not requested and (FOREGROUND in finalizers or ORPHAN in finalizers):
        return  # a finalizer set earlier decides when the request does not
    finalizers = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)]
    finalizers += {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
