"""The pod subresources that act: eviction within budgets, binding to a node, resize in place."""

from trimtab.clock import Clock
from trimtab.lab.apiserver.errors import (
    StatusError,
    bad_request,
    conflict,
    internal,
    not_found,
    required,
    too_many_requests,
)
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse, RequestPath
from trimtab.lab.handlers.bodies import accept_object, read_typed
from trimtab.lab.handlers.create_update import WriteHandler
from trimtab.lab.handlers.delete import DeleteHandler, DeletionOptions, read_grace
from trimtab.lab.handlers.get_list import key_of
from trimtab.lab.handlers.patch import Edit, read_edit
from trimtab.lab.resources.pod_spec import default_pod_level_requests
from trimtab.lab.resources.pods import validate_resize
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.resources.strategy import keep_from, text_at
from trimtab.lab.resources.workloads import selector_of
from trimtab.lab.storage.codec import JsonObject, copy_of
from trimtab.lab.storage.store import Entry, ObjectStore
from trimtab.model.times import format_time

BUDGETS = "poddisruptionbudgets.policy"
#: Seconds to wait when a budget's status lags behind its spec.
STALE_RETRY = 10
SUCCESS: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class PodActions:
    """Eviction, binding and resize."""

    def __init__(
        self, clock: Clock, store: ObjectStore, writes: WriteHandler, deletion: DeleteHandler
    ) -> None:
        self._clock = clock
        self._store = store
        self._writes = writes
        self._deletion = deletion

    async def evict(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Delete a pod if the budgets that cover it allow one more disruption."""
        body = read_typed(request, "policy", "v1", "Eviction")
        entry = self._pod(resource, target)
        options = body.get("deleteOptions") or {}
        conditions = options.get("preconditions") or {}
        wanted = DeletionOptions(
            read_grace(options.get("gracePeriodSeconds")),
            options.get("propagationPolicy", ""),
            conditions.get("uid", ""),
            conditions.get("resourceVersion", ""),
        )
        if options.get("dryRun"):
            request.query.setdefault("dryRun", []).extend(options["dryRun"])
        pod = entry.decoded()
        if not _goes_freely(pod):
            self._spend(request, target, entry, pod)
        await self._deletion.delete_object(request, resource, target, wanted)
        return ApiResponse.of(SUCCESS, 201)

    def _pod(self, resource: ServedResource, target: RequestPath) -> Entry:
        entry = self._store.get(resource.storage, key_of(resource, target))
        if entry is None:
            raise not_found(resource.plural, resource.group, target.name)
        return entry

    def _spend(self, request: ApiRequest, target: RequestPath, entry: Entry, pod: JsonObject) -> None:
        """Take one disruption from the budget that covers the pod, or refuse."""
        budgets = [
            budget
            for budget in (one.decoded() for one in self._store.shelf(BUDGETS).range(target.namespace))
            if _covers(budget, entry)
        ]
        if not budgets:
            return
        if len(budgets) > 1:
            raise internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        budget = budgets[0]
        if not _is_ready(pod) and _spares_unready(budget):
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
        status.setdefault("disruptedPods", {})[entry.name] = format_time(self._clock.now())
        self._store.commit(BUDGETS, budget, {})

    async def bind(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Assign a pod to a node."""
        body = read_typed(request, "", "v1", "Binding")
        if body["metadata"].get("name") != target.name:
            raise bad_request("name in URL does not match name in Binding object")
        node = (body.get("target") or {}).get("name", "")
        if not node:
            raise StatusError(
                422, "Invalid", f'Binding "{target.name}" is invalid: {required("target.name")}'
            )

        def change(old: JsonObject) -> JsonObject:
            assigned = text_at(old, "spec", "nodeName")
            if assigned or "deletionTimestamp" in old["metadata"]:
                why = (
                    f'pod {target.name} is already assigned to node "{assigned}"'
                    if assigned
                    else f"pod {target.name} is being deleted, cannot be assigned to a host"
                )
                raise conflict("pods/binding", "", target.name, why)
            del old["metadata"]["resourceVersion"]
            old["spec"]["nodeName"] = node
            _set_condition(old, {"type": "PodScheduled", "status": "True"}, format_time(self._clock.now()))
            return old

        await self._writes.modify(request, resource, target, change, check=lambda _obj, _old: [])
        return ApiResponse.of(SUCCESS, 201)

    async def resize(
        self, request: ApiRequest, resource: ServedResource, target: RequestPath, verb: str
    ) -> ApiResponse:
        """Change the resources of a running pod's containers."""
        entry = self._pod(resource, target)
        if verb == "get":
            return self._writes.answer(request, resource, target, entry)
        if verb == "patch":
            edit = read_edit(request, resource.shape(target.version), is_custom=False)
        else:
            body = read_typed(request, "", "v1", "Pod")
            edit = _replace_by(body)

        def change(old: JsonObject) -> JsonObject:
            version = old["metadata"]["resourceVersion"]
            wanted = accept_object(edit(copy_of(old)), request, resource, target, [])
            resized = {**old, "spec": _resized(old["spec"], wanted.get("spec", {}))}
            named = wanted["metadata"].get("resourceVersion")
            resized["metadata"] = {**old["metadata"], "resourceVersion": named}
            if not named or (verb == "patch" and named == version):
                del resized["metadata"]["resourceVersion"]
            return resized

        written = await self._writes.modify(request, resource, target, change, check=validate_resize)
        return self._writes.answer(request, resource, target, written)


def _resized(spec: JsonObject, wanted: JsonObject) -> JsonObject:
    """Return the old spec with the resources of the new one; everything else that was sent is ignored."""
    merged: JsonObject = copy_of(spec)
    for field in ("containers", "initContainers"):
        new = {one.get("name"): one for one in wanted.get(field) or ()}
        for container in merged.get(field) or ():
            for name in ("resources", "resizePolicy") if container["name"] in new else ():
                keep_from(container, new[container["name"]], name)
    default_pod_level_requests(merged)
    return merged


def _replace_by(wanted: JsonObject) -> Edit:
    return lambda _old: wanted


def _goes_freely(pod: JsonObject) -> bool:
    """Tell whether a pod disturbs nobody: it has ended, is not yet placed, or is already going."""
    phase = text_at(pod, "status", "phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _is_ready(pod: JsonObject) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _covers(budget: JsonObject, pod: Entry) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and selector_of(selector).matches(pod.labels)


def _spares_unready(budget: JsonObject) -> bool:
    """Tell whether an unhealthy pod may go: always, or while enough others are healthy."""
    status = budget["status"]
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def _over_budget(cause: str, retry_after: int | None) -> StatusError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return too_many_requests(message, retry_after, ("DisruptionBudget", cause))


def _set_condition(pod: JsonObject, condition: JsonObject, moment: str) -> None:
    status = pod.setdefault("status", {})
    kept = [one for one in status.get("conditions") or () if one.get("type") != condition["type"]]
    status["conditions"] = [*kept, {**condition, "lastProbeTime": None, "lastTransitionTime": moment}]
