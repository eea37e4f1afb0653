"""Create and update: the path of one write from body to storage.

decode -> default -> mutating admission -> prepare -> validate -> validating admission -> owners -> commit. Between
reading and committing others may write (webhooks take time), so a commit checks that the object is still the one that
was read and starts again otherwise, unless the client named the version it read.
"""

from collections.abc import Awaitable, Callable

from trimtab.clock import Clock
from trimtab.lab.admission import AdmissionAttributes, AdmissionChain
from trimtab.lab.apiserver.errors import (
    StatusError,
    already_exists,
    conflict,
    forbidden,
    invalid,
    invalid_value,
    method_not_allowed,
    not_found,
)
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse, RequestPath
from trimtab.lab.handlers import metadata
from trimtab.lab.handlers.bodies import ordered, read_object
from trimtab.lab.handlers.get_list import key_of
from trimtab.lab.handlers.views import choose_view
from trimtab.lab.patches.managed_fields import Manager, track_update
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.resources.strategy import WriteContext, keep_from
from trimtab.lab.storage.bootstrap import Identities
from trimtab.lab.storage.codec import JsonObject, copy_of
from trimtab.lab.storage.store import Entry, ObjectStore
from trimtab.model.field_errors import FieldError

#: How often an unconditional write starts again after losing a race.
ATTEMPTS = 5
#: How often a generated name that is taken is replaced.
NAME_ATTEMPTS = 8

#: Subresources whose changes of the spec count as a new generation; binding a pod does not.
COUNTED = ("", "scale", "resize", "ephemeralcontainers")

Check = Callable[[JsonObject, JsonObject], list[FieldError]]
Change = Callable[[JsonObject], JsonObject | Awaitable[JsonObject]]


class WriteHandler:
    """The writing verbs of every resource, except deletion."""

    def __init__(
        self,
        clock: Clock,
        store: ObjectStore,
        identities: Identities,
        admission: AdmissionChain,
        *,
        tracks_fields: bool = True,
    ) -> None:
        self._clock = clock
        self._store = store
        self._identities = identities
        self._admission = admission
        self._tracks_fields = tracks_fields

    def scene(self, request: ApiRequest) -> WriteContext:
        """Return the moment of a write."""
        return WriteContext(self._clock.now(), self._identities.uid, request.user.name)

    async def create(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Create the object in the body."""
        if resource.is_namespaced and not target.namespace:
            raise method_not_allowed()
        obj = read_object(request, resource, target)
        entry = await self.create_object(request, resource, target, obj)
        return self.answer(request, resource, target, entry, 201)

    async def create_object(
        self,
        request: ApiRequest,
        resource: ServedResource,
        target: RequestPath,
        obj: JsonObject,
        manager: Manager | None = None,
    ) -> Entry:
        """Create a decoded object in the stored version; a dry run stores nothing."""
        self._check_namespace(resource, target)
        scene = self.scene(request)
        if obj["metadata"].get("resourceVersion"):
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        self._choose_name(resource, obj)
        attempt = AdmissionAttributes("CREATE", resource, target, obj, None, request)
        obj = await self._admission.mutate(attempt)
        metadata.fill_on_create(obj, resource, scene)
        if resource.has_status and not resource.strategy.keeps_status_on_create:
            obj.pop("status", None)
        resource.strategy.prepare_for_create(obj, scene)
        request.warnings.extend(resource.strategy.warnings(obj))
        self._refuse(resource, obj, metadata.validate(obj, resource) + resource.strategy.validate_create(obj))
        await self._admission.validate(attempt.with_object(obj))
        self._check_namespace(resource, target)
        entry_key = key_of_object(obj)
        if self._store.get(resource.storage, entry_key) is not None:
            raise already_exists(resource.plural, resource.group, obj["metadata"]["name"])
        if self._tracks_fields and manager is None:
            self._own(request, resource, target, obj, None)
        return self._store_object(request, resource, obj)

    async def update(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Replace an object by the one in the body."""
        obj = read_object(request, resource, target)
        if resource.strategy.needs_version_on_update and not obj["metadata"].get("resourceVersion"):
            self._existing(resource, target)
            cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource.plural, resource.group, target.name, [cause])
        entry = await self.modify(request, resource, target, lambda _old: copy_of(obj))
        return self.answer(request, resource, target, entry)

    async def modify(
        self,
        request: ApiRequest,
        resource: ServedResource,
        target: RequestPath,
        change: Change,
        *,
        owns: bool = True,
        check: Check | None = None,
    ) -> Entry:
        """Write `change(old)` over an object, starting again when it lost a race it may repeat.

        `owns` says whether the request's manager takes the changed fields (apply has done so itself); `check` judges
        the change instead of the kind's rules, for subresources that may do more or less.
        """
        key = key_of(resource, target)
        for left in reversed(range(ATTEMPTS)):
            entry = self._existing(resource, target)
            old = entry.decoded()
            made = change(entry.decoded())
            obj = made if isinstance(made, dict) else await made
            is_conditional = self._check_version(resource, obj, entry)
            obj = await self._prepare(
                AdmissionAttributes("UPDATE", resource, target, obj, old, request), check
            )
            current = self._store.get(resource.storage, key)
            if current is entry:
                if self._tracks_fields and owns:
                    self._own(request, resource, target, obj, old)
                if obj == old:
                    return entry
                return self._store_object(request, resource, obj)
            if is_conditional or left == 0:
                break
        raise conflict(resource.plural, resource.group, target.name)

    def _existing(self, resource: ServedResource, target: RequestPath) -> Entry:
        entry = self._store.get(resource.storage, key_of(resource, target))
        if entry is None:
            raise not_found(resource.plural, resource.group, target.name)
        return entry

    async def _prepare(self, attempt: AdmissionAttributes, check: Check | None) -> JsonObject:
        """Admit and check an update."""
        resource, request, obj, old = attempt.resource, attempt.request, attempt.obj, attempt.old
        assert obj is not None, "an update has an object"
        assert old is not None, "an update has an old object"
        is_status = attempt.target.subresource == "status"
        if is_status:
            obj = self._status_only(resource, obj, old)
        elif resource.has_status and not attempt.target.subresource:
            keep_from(obj, old, "status")
        obj = await self._admission.mutate(attempt.with_object(obj))
        metadata.keep_on_update(obj, old)
        if is_status:
            resource.strategy.prepare_for_status(obj, old)
        else:
            resource.strategy.prepare_for_update(obj, old, self.scene(request))
            counts = attempt.target.subresource in COUNTED and resource.has_generation
            if counts and _spec_differs(resource, obj, old):
                obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        judge = check or (
            resource.strategy.validate_status if is_status else resource.strategy.validate_update
        )
        self._refuse(resource, obj, metadata.validate_update(obj, old) + judge(obj, old))
        await self._admission.validate(attempt.with_object(obj))
        return ordered(obj)

    def _status_only(self, resource: ServedResource, obj: JsonObject, old: JsonObject) -> JsonObject:
        """Return the old object with the new status, and new metadata where the kind lets status writers set it."""
        merged = {name: value for name, value in old.items() if name != "status"}
        if "status" in obj:
            merged["status"] = obj["status"]
        if resource.strategy.status_writes_metadata:
            merged["metadata"] = {
                **old["metadata"],
                **{n: obj["metadata"].get(n, {}) for n in ("labels", "annotations")},
            }
        else:
            merged["metadata"] = dict(old["metadata"])
        merged["metadata"].pop("managedFields", None)
        if "managedFields" in obj["metadata"]:
            merged["metadata"]["managedFields"] = obj["metadata"]["managedFields"]
        return merged

    def _choose_name(self, resource: ServedResource, obj: JsonObject) -> None:
        meta = obj["metadata"]
        if meta.get("name") or not meta.get("generateName"):
            return
        for _ in range(NAME_ATTEMPTS):
            # 63 is the shortest limit on names, so a generated one always fits.
            meta["name"] = meta["generateName"][: 63 - 5] + self._identities.suffix()
            if self._store.get(resource.storage, key_of_object(obj)) is None:
                return

    def _check_namespace(self, resource: ServedResource, target: RequestPath) -> None:
        if not resource.is_namespaced:
            return
        namespace = self._store.get("namespaces", target.namespace)
        if namespace is None:
            raise not_found("namespaces", "", target.namespace)
        if namespace.is_deleting:
            why = (
                f"unable to create new content in namespace {target.namespace} because it is being terminated"
            )
            problem = forbidden(resource.plural, resource.group, target.name, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {target.namespace} is being terminated",
            }
            details = {**(problem.details or {}), "causes": [{**cause, "field": "metadata.namespace"}]}
            raise StatusError(problem.code, problem.reason, problem.message, details)

    def _check_version(self, resource: ServedResource, obj: JsonObject, entry: Entry) -> bool:
        """Refuse a write made on another version or object; tell whether it named one."""
        meta = obj["metadata"]
        uid = meta.get("uid")
        if uid and uid != entry.uid:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
            raise conflict(resource.plural, resource.group, entry.name, why)
        version = meta.get("resourceVersion")
        if not version:
            return False
        if version != str(entry.version):
            raise conflict(resource.plural, resource.group, entry.name)
        return True

    def _own(
        self,
        request: ApiRequest,
        resource: ServedResource,
        target: RequestPath,
        obj: JsonObject,
        old: JsonObject | None,
    ) -> None:
        manager = Manager(
            request.field_manager, "Update", resource.api_version(target.version), target.subresource
        )
        track_update(obj, old, resource.shape(resource.storage_version), manager, self._clock.now())

    def _store_object(self, request: ApiRequest, resource: ServedResource, obj: JsonObject) -> Entry:
        fields = resource.strategy.fields(obj)
        if request.is_dry_run:
            return Entry(obj, fields, int(obj["metadata"].get("resourceVersion") or 0))
        meta = obj["metadata"]
        is_last = "deletionTimestamp" in meta and not meta.get("finalizers")
        if is_last and not meta.get("deletionGracePeriodSeconds") and not resource.strategy.is_held(obj):
            # The last finalizer is gone: this update completes the deletion.
            return self._store.remove(resource.storage, key_of_object(obj), obj)
        return self._store.commit(resource.storage, ordered(obj), fields)

    @staticmethod
    def _refuse(resource: ServedResource, obj: JsonObject, causes: list[FieldError]) -> None:
        if causes:
            raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)

    def answer(
        self,
        request: ApiRequest,
        resource: ServedResource,
        target: RequestPath,
        entry: Entry,
        code: int = 200,
    ) -> ApiResponse:
        """Answer with the written object."""
        view = choose_view(request, resource, target.version, self._clock.now)
        return ApiResponse(code, view.one(entry))


def key_of_object(obj: JsonObject) -> str:
    """Return the storage key of an object."""
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _spec_differs(resource: ServedResource, obj: JsonObject, old: JsonObject) -> bool:
    ignored = ("metadata", "status") if resource.has_status or not resource.is_custom else ("metadata",)
    return {n: v for n, v in obj.items() if n not in ignored} != {
        n: v for n, v in old.items() if n not in ignored
    }
