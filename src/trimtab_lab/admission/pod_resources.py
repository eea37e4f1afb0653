"""The admission plugins about the resources of pods: LimitRanger and PodResizeValidator."""

from collections.abc import Iterator

from trimtab.decide.vertical.resources.limit_ranges import LimitRanges
from trimtab.decide.vertical.resources.pod_rules import container_violations, pod_totals, pod_violations
from trimtab.model.core.objects import LimitRange, LimitRangeItem, Node
from trimtab.model.core.pod import CPU, MEMORY, PodSpec
from trimtab.model.json import wire
from trimtab_lab.admission import AdmissionAttributes, AdmissionPlugin
from trimtab_lab.apiserver.errors import forbidden
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.storage.store import ObjectStore

RANGES = "limitranges"
NODES = "nodes"
DEFAULTED = "kubernetes.io/limit-ranger"


class LimitRanger(AdmissionPlugin):
    """Applies the defaults and the bounds of LimitRanges to pods."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def mutate(self, attributes: AdmissionAttributes) -> JsonObject | None:
        """Fill in default requests and limits."""
        obj = attributes.obj
        if obj is None or not _applies(attributes):
            return None
        set_here: list[str] = []
        for limit_range in self._ranges(attributes):
            default = _merged(limit_range)
            for words, field in (("container", "containers"), ("init container", "initContainers")):
                for container in obj["spec"].get(field) or ():
                    set_here += _fill(container, default, words)
        if set_here:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations[DEFAULTED] = f"LimitRanger plugin set: {'; '.join(set_here)}"
        return obj

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a pod that violates a bound."""
        obj = attributes.obj
        if obj is None or not _applies(attributes):
            return
        spec = wire.convert(obj["spec"], PodSpec)
        for limit_range in self._ranges(attributes):
            messages = [message for item in limit_range.spec.limits for message in _violations(spec, item)]
            if messages:
                reason = messages[0] if len(messages) == 1 else f"[{', '.join(dict.fromkeys(messages))}]"
                raise forbidden("pods", "", obj["metadata"].get("name", ""), reason)

    def _ranges(self, attributes: AdmissionAttributes) -> list[LimitRange]:
        entries = self._store.resource(RANGES).all(attributes.request.info.namespace)
        return [wire.convert(entry.decoded(), LimitRange) for entry in entries]


def _applies(attributes: AdmissionAttributes) -> bool:
    resource = attributes.request.resource
    if resource.plural != "pods" or resource.group:
        return False
    is_deleting = attributes.old is not None and "deletionTimestamp" in attributes.old["metadata"]
    writes = {("CREATE", ""), ("UPDATE", "resize")}
    return not is_deleting and (attributes.operation, attributes.request.info.subresource) in writes


def _merged(limit_range: LimitRange) -> dict[str, dict[str, str]]:
    default: dict[str, dict[str, str]] = {"limits": {}, "requests": {}}
    for item in limit_range.spec.limits:
        if item.type == "Container":
            default["requests"].update({name: str(amount) for name, amount in item.default_request.items()})
            default["limits"].update({name: str(amount) for name, amount in item.default.items()})
    return default


def _fill(container: JsonObject, default: dict[str, dict[str, str]], words: str) -> Iterator[str]:
    resources = container.setdefault("resources", {})
    for kind in ("requests", "limits"):
        missing = {
            name: amount for name, amount in default[kind].items() if name not in resources.get(kind, {})
        }
        if missing:
            resources[kind] = {**resources.get(kind, {}), **missing}
            yield f"{', '.join(sorted(missing))} {kind[:-1]} for {words} {container['name']}"


def _violations(spec: PodSpec, item: LimitRangeItem) -> Iterator[str]:
    if item.type == "Container":
        ranges = LimitRanges(container=item)
        bare = PodSpec(containers=spec.containers)
        for container in (*spec.containers, *spec.init_containers):
            for violation in container_violations(container, bare, ranges):
                yield violation.message
    elif item.type == "Pod":
        ranges = LimitRanges(pod=item)
        # Validation compares pod-level resources with the containers; here they only count.
        totals = pod_totals(spec)
        for violation in pod_violations(PodSpec(resources=totals), ranges):
            yield violation.message


class PodResizeValidator(AdmissionPlugin):
    """Rejects a resize beyond what the pod's node can allocate."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a resize that requests more than the node can allocate."""
        obj, old = attributes.obj, attributes.old
        if attributes.request.info.subresource != "resize" or obj is None or old is None:
            return
        node_name = obj["spec"].get("nodeName")
        if not node_name or obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        name = obj["metadata"]["name"]
        entry = self._store.get(NODES, node_name)
        if entry is None:
            raise forbidden("pods", "", name, f'node "{node_name}" not found')
        short = list(_shortages(wire.convert(obj["spec"], PodSpec), wire.convert(entry.decoded(), Node)))
        if short:
            reason = f"node didn't have enough allocatable resources: {'; '.join(short)}"
            raise forbidden("pods", "", name, reason, {"reason": "NodeCapacity"})


def _shortages(spec: PodSpec, node: Node) -> Iterator[str]:
    requests = pod_totals(spec).requests
    for resource, count in ((CPU, "milli_value"), (MEMORY, "value")):
        request, allocatable = requests.get(resource), node.status.allocatable.get(resource)
        has = getattr(allocatable, count)() if allocatable is not None else 0
        if request is not None and getattr(request, count)() > has:
            yield f"{resource}, requested: {getattr(request, count)()}, allocatable: {has}"
