"""Patch: JSON patch, merge patch, strategic merge patch and server-side apply."""

from collections.abc import Callable

from trimtab.model.json.shape import describe
from trimtab.model.status import bad_request, invalid, unsupported_media_type, unsupported_patch_type
from trimtab_lab.apiserver.errors import required
from trimtab_lab.apiserver.request import ApiRequest, ApiResponse, ResourceRequest
from trimtab_lab.handlers.bodies import accept_object, check_name, check_type, prune_object
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.create_update import WriteHandler
from trimtab_lab.patches import json_patch, managed_fields, merge
from trimtab_lab.patches.managed_fields import Manager
from trimtab_lab.schemas.shapes import Shape
from trimtab_lab.storage.codec import JSON, YAML, JsonObject, decode_body, decode_json

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
APPLY_JSON = "application/apply-patch+json"

Edit = Callable[[JsonObject], JsonObject]


def read_edit(request: ApiRequest, shape: Shape, *, is_custom: bool) -> Edit:
    """Return the function that a patch body describes. Server-side apply is not among them."""
    media = request.media_type
    if media == JSON_PATCH:
        operations = json_patch.parse(request.body)

        def edit(obj: JsonObject) -> JsonObject:
            changed = json_patch.apply(obj, operations)
            if not isinstance(changed, dict):
                raise bad_request("the patch leaves something that is not an object")
            return changed

        return edit
    if media == MERGE_PATCH:
        patch = _read_patch(request)
        return lambda obj: dict(merge.merge(obj, patch))
    if media == STRATEGIC_PATCH and not is_custom:
        patch = _read_patch(request)
        return lambda obj: merge.merge_strategically(obj, patch, shape)
    if media == STRATEGIC_PATCH:
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    raise unsupported_patch_type()


def replace_by(obj: JsonObject) -> Edit:
    """Return the edit of an update, which replaces the whole object."""
    return lambda _old: obj


def _read_patch(request: ApiRequest) -> JsonObject:
    patch = decode_json(request.body)
    if not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: the patch must be an object, not {describe(patch)}")
    return patch


class PatchHandler:
    """The verb patch."""

    def __init__(self, context: HandlerContext, writes: WriteHandler) -> None:
        self._context = context
        self._writes = writes

    async def patch(self, request: ResourceRequest) -> ApiResponse:
        """Change part of an object."""
        if request.media_type in (APPLY_PATCH, APPLY_JSON):
            return await self._apply(request)
        resource = request.resource
        edit = read_edit(request, resource.shape(request.info.version), is_custom=resource.is_custom)
        type_meta = {"kind": resource.kind, "apiVersion": request.api_version}

        def change(old: JsonObject) -> JsonObject:
            version = old["metadata"]["resourceVersion"]
            changed = edit(request.to_request_version(old))
            is_strategic = request.media_type == STRATEGIC_PATCH
            if is_strategic and all(isinstance(changed.get(name), str) for name in type_meta):
                # A strategic patch is decoded into the type that the path names.
                changed |= type_meta
            if not all(changed.get(name) for name in type_meta):
                raise bad_request("the patch leaves an object without apiVersion or kind")
            if not isinstance(changed.get("metadata"), dict):
                raise bad_request("the patch leaves no metadata")
            # The version just read is not the client's precondition; one that the patch writes is.
            if changed["metadata"].get("resourceVersion") == version:
                del changed["metadata"]["resourceVersion"]
            return accept_object(changed, request, [])

        entry = await self._writes.modify(request, change)
        return self._context.respond(request, entry)

    async def _apply(self, request: ResourceRequest) -> ApiResponse:
        """Apply a configuration: create the object, or merge and own the fields that it lists."""
        resource = request.resource
        config = _read_configuration(request)
        manager = Manager(request.field_manager, "Apply", request.api_version, request.info.subresource)
        shape = resource.shape(resource.storage_version)
        is_forced = request.flag("force")

        def change(old: JsonObject) -> JsonObject:
            now = self._context.clock.now()
            merged = managed_fields.apply(old, config, shape, manager, now, force=is_forced)
            if not config["metadata"].get("resourceVersion"):
                merged["metadata"].pop("resourceVersion", None)
            resource.strategy.default(merged)
            return merged

        if self._context.find(request) is None and not request.info.subresource:
            empty: JsonObject = {
                "kind": config["kind"],
                "apiVersion": resource.storage_api_version,
                "metadata": dict(config["metadata"]),
            }
            entry = await self._writes.create_object(request, change(empty), owns=False)
            return self._context.respond(request, entry, 201)
        entry = await self._writes.modify(request, change, owns=False)
        return self._context.respond(request, entry)


def _read_configuration(request: ResourceRequest) -> JsonObject:
    """Decode and check an applied configuration.

    It gets no defaults, because the manager would own them.
    """
    if not request.option("fieldManager"):
        cause = required("fieldManager", "is required for apply patch")
        raise invalid("PatchOptions", "meta.k8s.io", "", [cause])
    config = decode_body(request.body, YAML, (JSON, YAML))
    if not config.get("apiVersion") or not config.get("kind"):
        raise bad_request("an applied configuration must name its apiVersion and kind")
    check_type(config, request.resource.kind, request.api_version)
    meta = config.setdefault("metadata", {})
    if isinstance(meta, dict) and meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    prune_object(config, request, [])
    check_name(config, request)
    return request.to_storage_version(config)
