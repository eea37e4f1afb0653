"""Subresources that act: scale, and eviction, binding and resize of pods."""

from functools import partial
from typing import Any

from trimtab.model.core.metadata_validation import NEGATIVE
from trimtab.model.core.server_rules import ServerRules
from trimtab.model.core.workloads import validate_scale
from trimtab.model.labels.selector import Selector
from trimtab.model.status import StatusError, bad_request, conflict, internal, invalid, too_many_requests
from trimtab.model.times import format_time
from trimtab_lab.apiserver.errors import invalid_value, required
from trimtab_lab.apiserver.request import ApiResponse, ResourceRequest
from trimtab_lab.handlers.bodies import accept_object, check_name, read_typed
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.create_update import WriteHandler
from trimtab_lab.handlers.delete import DeleteHandler, DeletionOptions
from trimtab_lab.handlers.patch import read_edit, replace_by
from trimtab_lab.kinds.amounts import complete_pod_level
from trimtab_lab.kinds.pods import validate_resize
from trimtab_lab.kinds.registry import ScalePaths
from trimtab_lab.kinds.strategy import is_condition_true, keep_from, text_at
from trimtab_lab.kinds.workloads import selector_of
from trimtab_lab.schemas.shapes import prune, shape_of_kind
from trimtab_lab.storage.codec import JsonObject, copy_of
from trimtab_lab.storage.store import Entry

BUDGETS = "poddisruptionbudgets.policy"
#: Seconds to wait when a budget's status lags behind its spec.
STALE_RETRY = 10
SUCCESS: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class PodHandler:
    """Eviction, binding and resize of pods."""

    def __init__(self, context: HandlerContext, writes: WriteHandler, deletes: DeleteHandler) -> None:
        self._context = context
        self._writes = writes
        self._deletes = deletes

    async def evict(self, request: ResourceRequest) -> ApiResponse:
        """Delete a pod if the budget that covers it allows one more disruption."""
        body = read_typed(request, "policy", "v1", "Eviction")
        entry = self._context.get(request)
        options = DeletionOptions.of(request, body.get("deleteOptions") or {})
        pod = entry.decoded()
        if not _ignores_budgets(pod):
            self._spend_budget(request, entry, pod)
        await self._deletes.delete_object(request, options)
        return ApiResponse.of(SUCCESS, 201)

    def _spend_budget(self, request: ResourceRequest, entry: Entry, pod: JsonObject) -> None:
        """Take a disruption from the budget that covers the pod, or reject the eviction."""
        store = self._context.store
        objects = store.resource(BUDGETS).all(request.info.namespace)
        budgets = [budget for budget in (obj.decoded() for obj in objects) if _covers(budget, entry)]
        if not budgets:
            return
        if len(budgets) > 1:
            raise internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        budget = budgets[0]
        if not is_condition_true(pod, "Ready") and _allows_unready(budget):
            return
        name, status = budget["metadata"]["name"], budget["status"]
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
            message = f"The disruption budget {name} is still being processed by the server."
            raise _over_budget(message, STALE_RETRY)
        if status.get("disruptionsAllowed", 0) <= 0:
            message = (
                f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
                f"{status.get('currentHealthy', 0)} currently"
            )
            raise _over_budget(message, None)
        if request.is_dry_run:
            return
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[entry.name] = format_time(self._context.clock.now())
        store.commit(BUDGETS, budget, {})

    async def bind(self, request: ResourceRequest) -> ApiResponse:
        """Assign a pod to a node."""
        body, name = read_typed(request, "", "v1", "Binding"), request.info.name
        if body["metadata"].get("name") != name:
            raise bad_request("name in URL does not match name in Binding object")
        node = (body.get("target") or {}).get("name", "")
        if not node:
            raise StatusError(422, f'Binding "{name}" is invalid: {required("target.name")}')

        def change(old: JsonObject) -> JsonObject:
            assigned = text_at(old, "spec", "nodeName")
            if assigned:
                reason = f'pod {name} is already assigned to node "{assigned}"'
                raise conflict("pods/binding", "", name, reason)
            if "deletionTimestamp" in old["metadata"]:
                reason = f"pod {name} is being deleted, cannot be assigned to a host"
                raise conflict("pods/binding", "", name, reason)
            del old["metadata"]["resourceVersion"]
            old["spec"]["nodeName"] = node
            _mark_scheduled(old, format_time(self._context.clock.now()))
            return old

        await self._writes.modify(request, change, check=lambda _obj, _old: [])
        return ApiResponse.of(SUCCESS, 201)

    async def resize(self, request: ResourceRequest) -> ApiResponse:
        """Change the resources of a running pod's containers."""
        entry, method, rules = self._context.get(request), request.method, self._context.rules
        if method in ("GET", "HEAD"):
            return self._context.respond(request, entry)
        if method == "PATCH":
            edit = read_edit(request, request.resource.shape(request.info.version), is_custom=False)
        else:
            edit = replace_by(read_typed(request, "", "v1", "Pod"))

        def change(old: JsonObject) -> JsonObject:
            wanted = accept_object(edit(copy_of(old)), request, [])
            resized = {**old, "spec": _resized(old["spec"], wanted.get("spec", {}), rules)}
            version, named = old["metadata"]["resourceVersion"], wanted["metadata"].get("resourceVersion")
            resized["metadata"] = {**old["metadata"], "resourceVersion": named}
            if not named or (method == "PATCH" and named == version):
                del resized["metadata"]["resourceVersion"]
            return resized

        check = partial(validate_resize, rules=rules)
        written = await self._writes.modify(request, change, check=check)
        return self._context.respond(request, written)


def _resized(spec: JsonObject, wanted: JsonObject, rules: ServerRules) -> JsonObject:
    """Return the old spec with the resources of the new one. All other changes are ignored."""
    merged: JsonObject = copy_of(spec)
    for field in ("containers", "initContainers"):
        new = {container.get("name"): container for container in wanted.get(field) or ()}
        for container in merged.get(field) or ():
            for name in ("resources", "resizePolicy") if container["name"] in new else ():
                keep_from(container, new[container["name"]], name)
    complete_pod_level(merged, rules)
    return merged


def _ignores_budgets(pod: JsonObject) -> bool:
    """Return whether the pod has ended, is not yet placed, or is already being deleted."""
    phase = text_at(pod, "status", "phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _covers(budget: JsonObject, pod: Entry) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and selector_of(selector).matches(pod.labels)


def _allows_unready(budget: JsonObject) -> bool:
    """Return whether an unready pod may be evicted: always, or while enough pods are healthy."""
    status = budget["status"]
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def _over_budget(cause: str, retry_after: int | None) -> StatusError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return too_many_requests(message, retry_after, ("DisruptionBudget", cause))


def _mark_scheduled(pod: JsonObject, now: str) -> None:
    status = pod.setdefault("status", {})
    kept = [
        condition for condition in status.get("conditions") or () if condition.get("type") != "PodScheduled"
    ]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*kept, scheduled]


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
        raise StatusError(500, f"Internal error occurred: {message}")
    return replicas, _value_at(obj, paths.status_replicas) or 0, _value_at(obj, paths.label_selector) or ""


def _value_at(obj: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if path else None
