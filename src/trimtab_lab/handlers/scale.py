"""The scale subresource of every kind that has one."""

from typing import Any

from trimtab.model.core.metadata_validation import NEGATIVE
from trimtab.model.core.server_rules import ServerRules
from trimtab.model.core.workloads import validate_scale
from trimtab.model.labels.selector import Selector
from trimtab_lab.apiserver.errors import StatusError, invalid, invalid_value
from trimtab_lab.apiserver.request import ApiResponse, ResourceRequest
from trimtab_lab.handlers.bodies import check_name, read_typed
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.create_update import WriteHandler
from trimtab_lab.handlers.patch import read_edit, replace_by
from trimtab_lab.resources.registry import ScalePaths
from trimtab_lab.resources.workloads import selector_of
from trimtab_lab.schemas.prune import prune
from trimtab_lab.schemas.shapes import shape_of_kind
from trimtab_lab.storage.codec import JsonObject, copy_of

GROUP, VERSION, KIND = "autoscaling", "v1", "Scale"
SHAPE = shape_of_kind(GROUP, VERSION, KIND)
SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScaleHandler:
    """Get, update and patch of the scale subresource."""

    def __init__(self, context: HandlerContext, writes: WriteHandler) -> None:
        self._context = context
        self._writes = writes

    async def handle(self, request: ResourceRequest) -> ApiResponse:
        """Read or write a scale."""
        entry = self._context.get(request)
        if request.method in ("GET", "HEAD"):
            return ApiResponse.of(scale_of(request, entry.decoded()))
        is_update = request.method == "PUT"
        if is_update:
            wanted = read_typed(request, GROUP, VERSION, KIND)
            check_name(wanted, request)
            edit = replace_by(wanted)
        else:
            edit = read_edit(request, SHAPE, is_custom=False)

        def change(old: JsonObject) -> JsonObject:
            before = scale_of(request, old)
            after = edit(copy_of(before))
            prune(after, SHAPE, KIND, VERSION)
            replicas = _checked_replicas(request, after, self._context.rules)
            version = (after.get("metadata") or {}).get("resourceVersion")
            old["metadata"].pop("resourceVersion")
            if version and (is_update or version != before["metadata"]["resourceVersion"]):
                # A patch carries the version it was computed on; only another one is the client's precondition.
                old["metadata"]["resourceVersion"] = version
            _set_replicas(request, old, replicas)
            return old

        written = await self._writes.modify(request, change)
        return ApiResponse.of(scale_of(request, written.decoded()))


def _checked_replicas(request: ResourceRequest, scale: JsonObject, rules: ServerRules) -> int:
    replicas: int = (scale.get("spec") or {}).get("replicas", 0)
    if request.info.version in request.resource.scales:
        # Custom resources may be cluster-scoped, and only their replicas are checked.
        errors = [invalid_value("spec.replicas", replicas, NEGATIVE)] if replicas < 0 else []
    else:
        errors = validate_scale(scale, rules)
    if errors:
        raise invalid(KIND, GROUP, request.info.name, errors)
    return replicas


def _set_replicas(request: ResourceRequest, obj: JsonObject, replicas: int) -> None:
    paths = request.resource.scales.get(request.info.version)
    *parents, last = filter(None, (paths.spec_replicas if paths else "spec.replicas").split("."))
    for name in parents:
        obj = obj.setdefault(name, {})
    obj[last] = replicas


def scale_of(request: ResourceRequest, obj: JsonObject) -> JsonObject:
    """Return the Scale of an object."""
    paths = request.resource.scales.get(request.info.version)
    if paths is None:
        spec = obj.get("spec", {})
        replicas, actual = spec.get("replicas", 0), obj.get("status", {}).get("replicas", 0)
        is_plain = request.resource.kind == "ReplicationController"
        selector = _selector_text(spec.get("selector"), is_plain=is_plain)
    else:
        replicas, actual, selector = _custom_scale(obj, paths)
    return {
        "kind": KIND,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {name: obj["metadata"][name] for name in SHOWN_METADATA if name in obj["metadata"]},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": actual, **({"selector": selector} if selector else {})},
    }


def _selector_text(selector: JsonObject | None, *, is_plain: bool) -> str:
    if selector is None:
        return ""
    return str(Selector.from_labels(selector)) if is_plain else str(selector_of(selector))


def _custom_scale(obj: JsonObject, paths: ScalePaths) -> tuple[int, int, str]:
    replicas = _value_at(obj, paths.spec_replicas)
    if replicas is None:
        message = f"the spec replicas field {paths.spec_replicas!r} does not exist"
        raise StatusError(500, "InternalError", f"Internal error occurred: {message}")
    return replicas, _value_at(obj, paths.status_replicas) or 0, _value_at(obj, paths.label_selector) or ""


def _value_at(obj: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if path else None
