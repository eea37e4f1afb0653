"""Create and update: the path of a write from body to storage.

decode -> default -> mutating admission -> prepare -> validate -> validating admission -> field owners -> commit.
Webhooks take time, and another write may be stored in between. A commit therefore checks that the object is still the
version that was read. If it is not, the write starts again, unless the client named a version.
"""

from collections.abc import Awaitable, Callable

from trimtab.model.field_errors import FieldError
from trimtab.model.status import (
    StatusError,
    already_exists,
    forbidden,
    invalid,
    method_not_allowed,
    not_found,
)
from trimtab_lab.admission import AdmissionAttributes
from trimtab_lab.apiserver.errors import invalid_value
from trimtab_lab.apiserver.request import ApiResponse, ResourceRequest
from trimtab_lab.handlers.bodies import (
    fill_on_create,
    keep_on_update,
    metadata_errors,
    metadata_update_errors,
    order_fields,
    read_object,
)
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.kinds.registry import ServedResource
from trimtab_lab.kinds.strategy import keep_from
from trimtab_lab.patches.managed_fields import Manager, track_update
from trimtab_lab.schemas.shapes import prune
from trimtab_lab.storage.codec import JsonObject, copy_of
from trimtab_lab.storage.store import Entry, key_of

#: How often an unconditional write starts again after losing a race.
ATTEMPTS = 5
#: How often a generated name that is taken is replaced.
NAME_ATTEMPTS = 8
#: Subresources whose changes of the spec increment the generation. Binding a pod does not.
COUNTED = ("", "scale", "resize", "ephemeralcontainers")

Check = Callable[[JsonObject, JsonObject], list[FieldError]]
Change = Callable[[JsonObject], JsonObject | Awaitable[JsonObject]]


class WriteHandler:
    """The verbs create and update, and the write path of all others but delete."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context
        self._store = context.store
        self._admission = context.admission

    async def create(self, request: ResourceRequest) -> ApiResponse:
        """Create the object in the body."""
        if request.resource.is_namespaced and not request.info.namespace:
            raise method_not_allowed()
        entry = await self.create_object(request, read_object(request))
        return self._context.respond(request, entry, 201)

    async def create_object(self, request: ResourceRequest, obj: JsonObject, *, owns: bool = True) -> Entry:
        """Create an object in the stored version. A dry run stores nothing.

        `owns` makes the request's manager the owner of all fields; server-side apply has set owners itself.
        """
        resource, strategy = request.resource, request.resource.strategy
        self._check_namespace(request)
        now = self._context.clock.now()
        if obj["metadata"].get("resourceVersion"):
            raise StatusError(500, "resourceVersion should not be set on objects to be created", reason="")
        self._generate_name(resource, obj)
        attributes = AdmissionAttributes("CREATE", request, obj, None)
        obj = await self._admission.mutate(attributes)
        fill_on_create(obj, resource, self._context.identities.uid(), now)
        if resource.has_status and not strategy.keeps_status_on_create:
            obj.pop("status", None)
        strategy.prepare_for_create(obj, now)
        _reject(
            resource,
            obj,
            metadata_errors(obj, resource, self._context.rules) + strategy.validate_create(obj),
        )
        await self._admission.validate(attributes.with_object(obj))
        self._check_namespace(request)
        if self._store.get(resource.storage, key_of(obj)) is not None:
            raise already_exists(resource.plural, resource.group, obj["metadata"]["name"])
        if owns:
            self._track_fields(request, obj, None)
        return self._commit(request, obj)

    async def update(self, request: ResourceRequest) -> ApiResponse:
        """Replace an object by the one in the body."""
        obj, resource = read_object(request), request.resource
        if resource.strategy.needs_version_on_update and not obj["metadata"].get("resourceVersion"):
            self._context.get(request)
            cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource.plural, resource.group, request.info.name, [cause])
        entry = await self.modify(request, lambda _old: copy_of(obj))
        return self._context.respond(request, entry)

    async def modify(
        self, request: ResourceRequest, change: Change, *, owns: bool = True, check: Check | None = None
    ) -> Entry:
        """Write `change(old)` over an object, and start again after a lost race if that is allowed.

        `owns` makes the request's manager the owner of changed fields; server-side apply has set owners itself.
        `check` replaces the kind's validation, for subresources that may change more or less.
        """
        for left in reversed(range(ATTEMPTS)):
            entry = self._context.get(request)
            old = entry.decoded()
            changed = change(entry.decoded())
            obj = changed if isinstance(changed, dict) else await changed
            is_conditional = _check_version(request.resource, obj, entry)
            obj = await self._prepare_update(request, obj, old, check)
            if self._context.find(request) is entry:
                if owns:
                    self._track_fields(request, obj, old)
                return entry if obj == old else self._commit(request, obj)
            if is_conditional or left == 0:
                break
        raise request.resource.conflict(request.info.name)

    async def _prepare_update(
        self, request: ResourceRequest, obj: JsonObject, old: JsonObject, check: Check | None
    ) -> JsonObject:
        """Admit and validate an update."""
        resource, strategy, subresource = (
            request.resource,
            request.resource.strategy,
            request.info.subresource,
        )
        is_status = subresource == "status"
        if is_status:
            obj = _status_only(resource, obj, old)
        elif resource.has_status and not subresource:
            keep_from(obj, old, "status")
        attributes = AdmissionAttributes("UPDATE", request, obj, old)
        obj = await self._admission.mutate(attributes)
        keep_on_update(obj, old)
        if is_status:
            strategy.prepare_for_status(obj, old)
        else:
            strategy.prepare_for_update(obj, old)
            counts = subresource in COUNTED and resource.has_generation
            if counts and _spec_differs(resource, obj, old) and resource.is_custom:
                # A field that the definition has lost since is gone when the object is read, so that is no edit.
                version = request.info.version
                old = copy_of(old)
                prune(old, resource.shape(version), resource.kind, version, is_custom=True)
            if counts and _spec_differs(resource, obj, old):
                obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        validate = check or (strategy.validate_status if is_status else strategy.validate_update)
        problems = metadata_update_errors(obj, old, self._context.rules)
        _reject(resource, obj, problems + validate(obj, old))
        await self._admission.validate(attributes.with_object(obj))
        return order_fields(obj)

    def _generate_name(self, resource: ServedResource, obj: JsonObject) -> None:
        meta = obj["metadata"]
        if meta.get("name") or not meta.get("generateName"):
            return
        for _ in range(NAME_ATTEMPTS):
            # 63 is the shortest limit on names, so a generated one always fits.
            meta["name"] = meta["generateName"][: 63 - 5] + self._context.identities.suffix()
            if self._store.get(resource.storage, key_of(obj)) is None:
                return

    def _check_namespace(self, request: ResourceRequest) -> None:
        resource, name = request.resource, request.info.namespace
        if not resource.is_namespaced:
            return
        namespace = self._store.get("namespaces", name)
        if namespace is None:
            raise not_found("namespaces", "", name)
        if namespace.is_deleting:
            reason = f"unable to create new content in namespace {name} because it is being terminated"
            message = f"namespace {name} is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
            raise forbidden(resource.plural, resource.group, request.info.name, reason, cause)

    def _track_fields(self, request: ResourceRequest, obj: JsonObject, old: JsonObject | None) -> None:
        if self._context.tracks_fields:
            manager = Manager(request.field_manager, "Update", request.api_version, request.info.subresource)
            shape = request.resource.shape(request.resource.storage_version)
            track_update(obj, old, shape, manager, self._context.clock.now())

    def _commit(self, request: ResourceRequest, obj: JsonObject) -> Entry:
        storage, strategy = request.resource.storage, request.resource.strategy
        fields = strategy.fields(obj)
        meta = obj["metadata"]
        if request.is_dry_run:
            return Entry(obj, fields, int(meta.get("resourceVersion") or 0))
        is_last = "deletionTimestamp" in meta and not meta.get("finalizers")
        if is_last and not meta.get("deletionGracePeriodSeconds") and not strategy.is_held(obj):
            # The last finalizer is gone: this update completes the deletion.
            return self._store.remove(storage, key_of(obj), obj)
        return self._store.commit(storage, order_fields(obj), fields)


def _status_only(resource: ServedResource, obj: JsonObject, old: JsonObject) -> JsonObject:
    """Return the old object with the new status.

    Labels and annotations are new too where the kind lets status writers set them.
    """
    merged = {name: value for name, value in old.items() if name != "status"}
    keep_from(merged, obj, "status")
    meta = merged["metadata"] = dict(old["metadata"])
    if resource.strategy.status_writes_metadata:
        meta.update({name: obj["metadata"].get(name, {}) for name in ("labels", "annotations")})
    keep_from(meta, obj["metadata"], "managedFields")
    return merged


def _check_version(resource: ServedResource, obj: JsonObject, entry: Entry) -> bool:
    """Reject a write made on another version or object, and return whether it named a version."""
    uid, version = obj["metadata"].get("uid"), obj["metadata"].get("resourceVersion")
    if uid and uid != entry.uid:
        reason = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
        raise resource.conflict(entry.name, reason)
    if version and version != str(entry.version):
        raise resource.conflict(entry.name)
    return bool(version)


def _reject(resource: ServedResource, obj: JsonObject, causes: list[FieldError]) -> None:
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)


def _spec_differs(resource: ServedResource, obj: JsonObject, old: JsonObject) -> bool:
    ignored = ("metadata", "status") if resource.has_status or not resource.is_custom else ("metadata",)

    def spec(of: JsonObject) -> JsonObject:
        return {name: value for name, value in of.items() if name not in ignored}

    return spec(obj) != spec(old)
