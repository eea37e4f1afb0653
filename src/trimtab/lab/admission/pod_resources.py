"""The admission plugins about the resources of pods: LimitRanger and PodResizeValidator."""

from collections.abc import Iterator

from trimtab.decide.vertical.resources.limit_ranges import LimitRanges
from trimtab.decide.vertical.resources.pod_rules import container_violations, pod_totals, pod_violations
from trimtab.lab.admission import AdmissionAttributes
from trimtab.lab.apiserver.errors import StatusError, forbidden
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import ObjectStore
from trimtab.model.core.objects import LimitRange, LimitRangeItem, Node
from trimtab.model.core.pod import CPU, MEMORY, PodSpec
from trimtab.model.json import wire

RANGES = "limitranges"
NODES = "nodes"
DEFAULTED = "kubernetes.io/limit-ranger"


class LimitRanger:
    """Gives containers the defaults of their namespace's LimitRanges, and refuses pods outside of the bounds."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def mutate(self, attempt: AdmissionAttributes) -> JsonObject | None:
        """Fill in default requests and limits."""
        if not _concerns(attempt):
            return None
        obj = attempt.obj
        assert obj is not None
        set_here: list[str] = []
        for limit_range in self._ranges(attempt):
            default = _merged(limit_range)
            for words, field in (("container", "containers"), ("init container", "initContainers")):
                for container in obj["spec"].get(field) or ():
                    set_here += _fill(container, default, words)
        if set_here:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations[DEFAULTED] = f"LimitRanger plugin set: {'; '.join(set_here)}"
        return obj

    async def validate(self, attempt: AdmissionAttributes) -> None:
        """Refuse a pod that breaks a bound."""
        if not _concerns(attempt):
            return
        assert attempt.obj is not None
        spec = wire.convert(attempt.obj["spec"], PodSpec)
        for limit_range in self._ranges(attempt):
            found = [message for item in limit_range.spec.limits for message in _complaints(spec, item)]
            if found:
                why = found[0] if len(found) == 1 else f"[{', '.join(dict.fromkeys(found))}]"
                raise forbidden("pods", "", attempt.obj["metadata"].get("name", ""), why)

    def _ranges(self, attempt: AdmissionAttributes) -> list[LimitRange]:
        entries = self._store.shelf(RANGES).range(attempt.target.namespace)
        return [wire.convert(entry.decoded(), LimitRange) for entry in entries]


def _concerns(attempt: AdmissionAttributes) -> bool:
    if attempt.resource.plural != "pods" or attempt.resource.group or attempt.obj is None:
        return False
    is_going = attempt.old is not None and "deletionTimestamp" in attempt.old["metadata"]
    wanted = {("CREATE", ""), ("UPDATE", "resize")}
    return not is_going and (attempt.operation, attempt.target.subresource) in wanted


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


def _complaints(spec: PodSpec, item: LimitRangeItem) -> Iterator[str]:
    if item.type == "Container":
        ranges = LimitRanges(container=item)
        bare = PodSpec(containers=spec.containers)
        for container in (*spec.containers, *spec.init_containers):
            for violation in container_violations(container, bare, ranges):
                yield violation.message
    elif item.type == "Pod":
        ranges = LimitRanges(pod=item)
        # What pod-level resources demand of the containers is validation's affair; here they only count.
        totals = pod_totals(spec)
        for violation in pod_violations(PodSpec(resources=totals), ranges):
            yield violation.message


class PodResizeValidator:
    """Refuses a resize beyond what the pod's node has to give."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def mutate(self, attempt: AdmissionAttributes) -> JsonObject | None:
        """Change nothing."""
        return None

    async def validate(self, attempt: AdmissionAttributes) -> None:
        """Compare what the pod would request with what its node can allocate."""
        obj, old = attempt.obj, attempt.old
        if attempt.target.subresource != "resize" or obj is None or old is None:
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
            why = f"node didn't have enough allocatable resources: {'; '.join(short)}"
            problem = forbidden("pods", "", name, why)
            details = {**(problem.details or {}), "causes": [{"reason": "NodeCapacity"}]}
            raise StatusError(problem.code, problem.reason, problem.message, details)


def _shortages(spec: PodSpec, node: Node) -> Iterator[str]:
    asked = pod_totals(spec).requests
    for resource, count in ((CPU, "milli_value"), (MEMORY, "value")):
        request, allocatable = asked.get(resource), node.status.allocatable.get(resource)
        has = getattr(allocatable, count)() if allocatable is not None else 0
        if request is not None and getattr(request, count)() > has:
            yield f"{resource}, requested: {getattr(request, count)()}, allocatable: {has}"
