"""The patch verb: which kind of patch, applied to which version of the object."""

from collections.abc import Callable

from trimtab.clock import Clock
from trimtab.lab.apiserver.errors import (
    bad_request,
    invalid,
    required,
    unsupported_media_type,
    unsupported_patch_type,
)
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse, RequestPath
from trimtab.lab.handlers.bodies import (
    accept_object,
    check_place,
    check_type,
    report_fields,
)
from trimtab.lab.handlers.create_update import WriteHandler
from trimtab.lab.handlers.get_list import key_of
from trimtab.lab.patches import json_patch, managed_fields, merge, strategic
from trimtab.lab.patches.managed_fields import Manager
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.schemas.prune import fit
from trimtab.lab.schemas.shapes import Shape
from trimtab.lab.storage.codec import JSON, YAML, JsonObject, decode_body, decode_json
from trimtab.lab.storage.store import ObjectStore
from trimtab.model.json.shape import describe

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
APPLY_JSON = "application/apply-patch+json"

Edit = Callable[[JsonObject], JsonObject]


def read_edit(request: ApiRequest, shape: Shape, *, is_custom: bool) -> Edit:
    """Return the function that a patch body describes, for every form but apply."""
    media = request.content_type.partition(";")[0].strip().lower()
    if media == JSON_PATCH:
        operations = json_patch.parse(request.body)

        def edit(obj: JsonObject) -> JsonObject:
            changed = json_patch.apply(obj, operations)
            if not isinstance(changed, dict):
                raise bad_request("the patch leaves something that is not an object")
            return changed

        return edit
    if media == MERGE_PATCH:
        patch = _read_object(request)
        return lambda obj: dict(merge.merge(obj, patch))
    if media == STRATEGIC_PATCH and not is_custom:
        patch = _read_object(request)
        return lambda obj: strategic.merge(obj, patch, shape)
    if media == STRATEGIC_PATCH:
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    raise unsupported_patch_type()


def _read_object(request: ApiRequest) -> JsonObject:
    patch = decode_json(request.body)
    if not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: the patch must be an object, not {describe(patch)}")
    return patch


class Patching:
    """The patch verb of every resource."""

    def __init__(self, clock: Clock, store: ObjectStore, writes: WriteHandler) -> None:
        self._clock = clock
        self._store = store
        self._writes = writes

    async def patch(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Change part of an object."""
        media = request.content_type.partition(";")[0].strip().lower()
        if media in (APPLY_PATCH, APPLY_JSON):
            return await self._apply(request, resource, target)
        shape = resource.shape(target.version)
        edit = read_edit(request, shape, is_custom=resource.is_custom)

        def change(old: JsonObject) -> JsonObject:
            version = old["metadata"]["resourceVersion"]
            obj = self._in_version(resource, target, old)
            changed = edit(obj)
            named = {"kind": resource.kind, "apiVersion": resource.api_version(target.version)}
            if media == STRATEGIC_PATCH and all(isinstance(changed.get(one), str) for one in named):
                # It is read into the type that the path names, whatever type it says it is.
                changed |= named
            if not all(changed.get(one) for one in named):
                raise bad_request("the patch leaves an object without apiVersion or kind")
            if not isinstance(changed.get("metadata"), dict):
                raise bad_request("the patch leaves no metadata")
            # The version just read is not the client's precondition; one that the patch writes is.
            if changed["metadata"].get("resourceVersion") == version:
                del changed["metadata"]["resourceVersion"]
            return accept_object(changed, request, resource, target, [])

        entry = await self._writes.modify(request, resource, target, change)
        return self._writes.answer(request, resource, target, entry)

    @staticmethod
    def _in_version(resource: ServedResource, target: RequestPath, obj: JsonObject) -> JsonObject:
        if (resource.group, target.version) == (resource.storage_group, resource.storage_version):
            return obj
        return resource.strategy.convert(obj, resource.group, target.version)

    async def _apply(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Server-side apply: create the object or take ownership of what the manager lists."""
        manager_name = request.option("fieldManager")
        if not manager_name:
            cause = required("fieldManager", "is required for apply patch")
            raise invalid("PatchOptions", "meta.k8s.io", "", [cause])
        config = decode_body(request.body, YAML, (JSON, YAML))
        if not config.get("apiVersion") or not config.get("kind"):
            raise bad_request("an applied configuration must name its apiVersion and kind")
        check_type(config, resource.kind, resource.api_version(target.version))
        if not isinstance(config.setdefault("metadata", {}), dict):
            raise bad_request("metadata must be an object")
        if config["metadata"].get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        config = _without_defaults(config, request, resource, target)
        manager = Manager(manager_name, "Apply", resource.api_version(target.version), target.subresource)
        shape = resource.shape(resource.storage_version)
        is_forced = request.flag("force")

        def change(old: JsonObject) -> JsonObject:
            merged = managed_fields.apply(old, config, shape, manager, self._clock.now(), force=is_forced)
            if not config["metadata"].get("resourceVersion"):
                merged["metadata"].pop("resourceVersion", None)
            resource.strategy.default(merged)
            return merged

        if self._store.get(resource.storage, key_of(resource, target)) is None and not target.subresource:
            fresh: JsonObject = {
                "kind": config["kind"],
                "apiVersion": resource_api_version(resource),
                "metadata": dict(config["metadata"]),
            }
            made = change(fresh)
            entry = await self._writes.create_object(request, resource, target, made, manager)
            return self._writes.answer(request, resource, target, entry, 201)
        entry = await self._writes.modify(request, resource, target, change, owns=False)
        return self._writes.answer(request, resource, target, entry)


def resource_api_version(resource: ServedResource) -> str:
    """Return the `apiVersion` of stored objects."""
    return (
        f"{resource.storage_group}/{resource.storage_version}"
        if resource.storage_group
        else resource.storage_version
    )


def _without_defaults(
    config: JsonObject, request: ApiRequest, resource: ServedResource, target: RequestPath
) -> JsonObject:
    """Check an applied configuration without adding defaults, which the manager did not ask to own."""
    config.setdefault("metadata", {})
    unknown = fit(
        config, resource.shape(target.version), resource.kind, target.version, is_custom=resource.is_custom
    )
    report_fields(request, resource.kind, target.version, unknown, [])
    check_place(config, resource, target)
    if (resource.group, target.version) != (resource.storage_group, resource.storage_version):
        config = resource.strategy.convert(config, resource.storage_group, resource.storage_version)
    return config
