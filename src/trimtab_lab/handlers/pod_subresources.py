"""The pod subresources that act: eviction within budgets, binding to a node, resize in place."""

from functools import partial

from trimtab.model.core.server_rules import ServerRules
from trimtab.model.times import format_time
from trimtab_lab.apiserver.errors import (
    StatusError,
    bad_request,
    conflict,
    internal,
    required,
    too_many_requests,
)
from trimtab_lab.apiserver.request import ApiResponse, ResourceRequest
from trimtab_lab.handlers.bodies import accept_object, read_typed
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.create_update import WriteHandler
from trimtab_lab.handlers.delete import DeleteHandler, DeletionOptions
from trimtab_lab.handlers.patch import read_edit, replace_by
from trimtab_lab.resources.amounts import complete_pod_level
from trimtab_lab.resources.pods import validate_resize
from trimtab_lab.resources.strategy import is_condition_true, keep_from, text_at
from trimtab_lab.resources.workloads import selector_of
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
            raise StatusError(422, "Invalid", f'Binding "{name}" is invalid: {required("target.name")}')

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
