"""The scale subresource: one small view of very different kinds."""

from typing import Any

from trimtab.lab.apiserver.errors import StatusError, invalid, invalid_value, not_found
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse, RequestPath
from trimtab.lab.handlers.bodies import check_place, read_typed
from trimtab.lab.handlers.create_update import WriteHandler
from trimtab.lab.handlers.get_list import key_of
from trimtab.lab.handlers.patch import Edit, read_edit
from trimtab.lab.resources.registry import ScalePaths, ServedResource
from trimtab.lab.resources.workloads import selector_of
from trimtab.lab.schemas.prune import fit
from trimtab.lab.schemas.shapes import shape_of_kind
from trimtab.lab.storage.codec import JsonObject, copy_of
from trimtab.lab.storage.store import ObjectStore
from trimtab.model.core.metadata_validation import NEGATIVE
from trimtab.model.core.workloads import validate_scale
from trimtab.model.labels.selector import Selector

GROUP, VERSION, KIND = "autoscaling", "v1", "Scale"
SHAPE = shape_of_kind(GROUP, VERSION, KIND)


class Scales:
    """Reading and writing the scale of any kind that has one."""

    def __init__(self, store: ObjectStore, writes: WriteHandler) -> None:
        self._store = store
        self._writes = writes

    async def handle(
        self, request: ApiRequest, resource: ServedResource, target: RequestPath, verb: str
    ) -> ApiResponse:
        """Answer a request on the scale subresource."""
        entry = self._store.get(resource.storage, key_of(resource, target))
        if entry is None:
            raise not_found(resource.plural, resource.group, target.name)
        if verb == "get":
            return ApiResponse.of(scale_of(resource, target, entry.decoded()))
        if verb == "update":
            wanted = read_typed(request, GROUP, VERSION, KIND)
            check_place(wanted, resource, target)
            edit = _replace_by(wanted)
        else:
            edit = read_edit(request, SHAPE, is_custom=False)

        def change(old: JsonObject) -> JsonObject:
            before = scale_of(resource, target, old)
            after = edit(copy_of(before))
            fit(after, SHAPE, KIND, VERSION)
            return _with_replicas(resource, target, old, before, after, is_whole=verb == "update")

        written = await self._writes.modify(request, resource, target, change)
        return ApiResponse.of(scale_of(resource, target, written.decoded()))


def _replace_by(wanted: JsonObject) -> Edit:
    return lambda _scale: wanted


def _with_replicas(
    resource: ServedResource,
    target: RequestPath,
    obj: JsonObject,
    before: JsonObject,
    after: JsonObject,
    *,
    is_whole: bool,
) -> JsonObject:
    """Return the object with the replicas of the written scale."""
    replicas = (after.get("spec") or {}).get("replicas", 0)
    paths = resource.scales.get(target.version)
    if paths is None:
        errors = validate_scale(after)
    else:  # custom resources may be cluster-scoped, and only their replicas are checked
        errors = [invalid_value("spec.replicas", replicas, NEGATIVE)] if replicas < 0 else []
    if errors:
        raise invalid(KIND, GROUP, target.name, errors)
    version = (after.get("metadata") or {}).get("resourceVersion")
    obj["metadata"].pop("resourceVersion")
    if version and (is_whole or version != before["metadata"]["resourceVersion"]):
        # A patch carries the version it was computed on; only another one is the client's precondition.
        obj["metadata"]["resourceVersion"] = version
    if paths is None:
        obj["spec"]["replicas"] = replicas
    else:
        _put(obj, paths.spec_replicas, replicas)
    return obj


def scale_of(resource: ServedResource, target: RequestPath, obj: JsonObject) -> JsonObject:
    """Return the scale of an object."""
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    paths = resource.scales.get(target.version)
    if paths is None:
        spec, status = obj.get("spec", {}), obj.get("status", {})
        wanted, seen = spec.get("replicas", 0), status.get("replicas", 0)
        selector = _selector_text(spec.get("selector"), is_plain=resource.kind == "ReplicationController")
    else:
        wanted, seen, selector = _custom(obj, paths)
    status_part: JsonObject = {"replicas": seen}
    if selector:
        status_part["selector"] = selector
    return {
        "kind": KIND,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status_part,
    }


def _selector_text(selector: JsonObject | None, *, is_plain: bool) -> str:
    if selector is None:
        return ""
    return str(Selector.from_labels(selector)) if is_plain else str(selector_of(selector))


def _custom(obj: JsonObject, paths: ScalePaths) -> tuple[int, int, str]:
    wanted = _get(obj, paths.spec_replicas)
    if wanted is None:
        message = f"the spec replicas field {paths.spec_replicas!r} does not exist"
        raise StatusError(500, "InternalError", f"Internal error occurred: {message}")
    return wanted, _get(obj, paths.status_replicas) or 0, _get(obj, paths.label_selector) or ""


def _get(obj: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if path else None


def _put(obj: JsonObject, path: str, value: Any) -> None:
    *parents, last = filter(None, path.split("."))
    for name in parents:
        obj = obj.setdefault(name, {})
    obj[last] = value
