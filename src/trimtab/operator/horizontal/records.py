"""The last decisions of each HPA, as the health port and `trimtab explain` show them."""

from collections.abc import Callable, Mapping

from trimtab.decide.horizontal import Explanation, Record, explain
from trimtab.decide.horizontal.records.record import dumps
from trimtab.model.json import wire
from trimtab.operator.health import HeldByAnotherReplica
from trimtab.operator.horizontal.inputs.hpa_cache import HpaCache, HpaState
from trimtab.operator.ownership import Ownership


def pages_of(
    autoscalers: HpaCache, ownership: Ownership | None = None
) -> Mapping[str, Callable[[str], bytes | None]]:
    """Return the pages that show records; `?name=namespace/name` chooses the HPA."""

    def here(key: str) -> str:
        """Return the key if it is ours; records of one that another copy decides would be old."""
        if ownership is not None and _named(autoscalers, key) and (where := ownership.elsewhere(key)):
            raise HeldByAnotherReplica(where)
        return key

    return {
        "/autoscalers": lambda _name: overview(autoscalers, ownership),
        "/explain": lambda name: explained(autoscalers, here(name)),
        "/records": lambda name: recorded(autoscalers, here(name)),
    }


def overview(autoscalers: HpaCache, ownership: Ownership | None = None) -> bytes:
    """Return one line of facts per HPA; of one that another copy decides, who that is."""
    lines = []
    for one in sorted(autoscalers, key=lambda one: one.key):
        where = ownership.elsewhere(one.key) if ownership is not None else ""
        lines.append(_facts(one) | {"elsewhere": where} if where else _line(one))
    return wire.encode({"autoscalers": lines})


def explained(autoscalers: HpaCache, key: str) -> bytes | None:
    """Return the explanation of the last decision about an HPA."""
    found = _named(autoscalers, key)
    if found is None or not found.records:
        return None
    story = _told(found.records[-1])
    return wire.encode({"about": found.key, "text": str(story), "explanation": wire.to_builtins(story)})


def recorded(autoscalers: HpaCache, key: str) -> bytes | None:
    """Return the last records of an HPA, one JSON object per line, oldest first."""
    found = _named(autoscalers, key)
    return None if found is None else b"".join(dumps(record) + b"\n" for record in found.records)


def _told(record: Record) -> Explanation:
    return explain(record, dry_run=record.is_dry_run)


def _named(autoscalers: HpaCache, key: str) -> HpaState | None:
    namespace, _, name = key.partition("/")
    return autoscalers.named(namespace, name)


def _facts(autoscaler: HpaState) -> dict[str, object]:
    hpa = autoscaler.hpa
    return {
        "namespace": hpa.metadata.namespace,
        "name": hpa.metadata.name,
        "native": autoscaler.is_native,
        "target": str(hpa.spec.scale_target_ref),
        "min": hpa.spec.min_replicas,
        "max": hpa.spec.max_replicas,
    }


def _line(autoscaler: HpaState) -> dict[str, object]:
    line = _facts(autoscaler)
    if autoscaler.records:
        story = _told(autoscaler.records[-1])
        line |= {
            "current": story.current,
            "desired": story.desired,
            "reason": str(story.reason),
            "summary": story.summary,
        }
    return line
