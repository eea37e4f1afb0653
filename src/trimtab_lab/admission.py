"""Admission: plugins change or reject a write before it is stored.

`AdmissionChain` calls the plugins in order: LimitRanger, webhooks (`webhooks`), PodResizeValidator. Validation that belongs to a
kind is in `kinds`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trimtab.model.quantity import Quantity
from trimtab.model.status import forbidden
from trimtab_lab.apiserver.request import ResourceRequest
from trimtab_lab.kinds.amounts import CPU_AND_MEMORY, Amounts, amounts_of, pod_total, range_violations
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.storage.store import ObjectStore

RANGES = "limitranges"
NODES = "nodes"
DEFAULTED = "kubernetes.io/limit-ranger"


@dataclass(frozen=True)
class AdmissionAttributes:
    """A write before it is stored: the request, and the object before and after."""

    operation: str
    request: ResourceRequest
    obj: JsonObject | None
    old: JsonObject | None

    def with_object(self, obj: JsonObject) -> "AdmissionAttributes":
        return replace(self, obj=obj)


class AdmissionPlugin:
    """A step of admission. The base class admits every write unchanged."""

    async def mutate(self, attributes: AdmissionAttributes) -> JsonObject | None:
        """Return the changed object, or None if nothing changed."""
        return None

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise an error to reject the write."""


class AdmissionChain:
    """All admission plugins in order."""

    def __init__(self, plugins: Sequence[AdmissionPlugin] = ()) -> None:
        self._plugins = tuple(plugins)

    async def mutate(self, attributes: AdmissionAttributes) -> JsonObject:
        """Return the object after every plugin."""
        for plugin in self._plugins:
            changed = await plugin.mutate(attributes)
            if changed is not None:
                attributes = attributes.with_object(changed)
        assert attributes.obj is not None, "only writes of an object are mutated"
        return attributes.obj

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise an error if a plugin rejects the write."""
        for plugin in self._plugins:
            await plugin.validate(attributes)


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
        for limits in self._ranges(attributes):
            default = _merged(limits)
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
        for limits in self._ranges(attributes):
            messages = [message for item in limits for message in _violations(obj["spec"], item)]
            if messages:
                reason = messages[0] if len(messages) == 1 else f"[{', '.join(dict.fromkeys(messages))}]"
                raise forbidden("pods", "", obj["metadata"].get("name", ""), reason)

    def _ranges(self, attributes: AdmissionAttributes) -> list[list[JsonObject]]:
        entries = self._store.resource(RANGES).all(attributes.request.info.namespace)
        return [entry.decoded()["spec"].get("limits") or [] for entry in entries]


def _applies(attributes: AdmissionAttributes) -> bool:
    resource = attributes.request.resource
    if resource.plural != "pods" or resource.group:
        return False
    is_deleting = attributes.old is not None and "deletionTimestamp" in attributes.old["metadata"]
    writes = {("CREATE", ""), ("UPDATE", "resize")}
    return not is_deleting and (attributes.operation, attributes.request.info.subresource) in writes


def _merged(limits: list[JsonObject]) -> dict[str, dict[str, str]]:
    default: dict[str, dict[str, str]] = {"limits": {}, "requests": {}}
    for item in limits:
        if item.get("type") == "Container":
            default["requests"].update(item.get("defaultRequest") or {})
            default["limits"].update(item.get("default") or {})
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


def _violations(spec: JsonObject, item: JsonObject) -> Iterator[str]:
    if item.get("type") == "Container":
        for container in (*spec["containers"], *(spec.get("initContainers") or ())):
            yield from range_violations(
                item, amounts_of(container, "requests"), amounts_of(container, "limits")
            )
    elif item.get("type") == "Pod":
        yield from range_violations(item, pod_total(spec, "requests"), pod_total(spec, "limits"))


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
        allocatable = entry.decoded().get("status", {}).get("allocatable") or {}
        short = list(_shortages(pod_total(obj["spec"], "requests"), allocatable))
        if short:
            reason = f"node didn't have enough allocatable resources: {'; '.join(short)}"
            raise forbidden("pods", "", name, reason, {"reason": "NodeCapacity"})


def _shortages(requests: Amounts, allocatable: JsonObject) -> Iterator[str]:
    for name in CPU_AND_MEMORY:
        if name in requests:
            request, node = requests[name], Quantity.parse(str(allocatable.get(name, 0)))
            asked, has = (
                amount.milli_value() if name == "cpu" else amount.value() for amount in (request, node)
            )
            if asked > has:
                yield f"{name}, requested: {asked}, allocatable: {has}"
