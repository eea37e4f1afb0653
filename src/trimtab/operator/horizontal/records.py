"""The last decisions of each HPA, as the health port and `trimtab explain` show them."""

from collections.abc import Callable, Mapping

from trimtab.decide.horizontal.explain import explain, summary_of
from trimtab.decide.horizontal.records.record import dumps
from trimtab.model.json import wire
from trimtab.operator.health import HeldByAnotherReplica
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.ownership import Ownership


def record_pages(
    hpas: HpaCache, ownership: Ownership | None = None
) -> Mapping[str, Callable[[str], bytes | None]]:
    """Return the pages that show records of the HPA `?name=namespace/name`."""

    def owned(key: str) -> str:
        """Return the key, or raise if another replica holds the HPA, because our records are old then."""
        # With shards this process may not watch the HPA at all.
        may_exist = ownership is not None and (ownership.count > 1 or _named(hpas, key) is not None)
        if ownership is not None and may_exist and (owner := ownership.describe_owner(key)):
            raise HeldByAnotherReplica(owner)
        return key

    return {
        "/autoscalers": lambda _name: overview_page(hpas, ownership),
        "/explain": lambda name: explain_page(hpas, owned(name)),
        "/records": lambda name: records_page(hpas, owned(name)),
    }


def overview_page(hpas: HpaCache, ownership: Ownership | None = None) -> bytes:
    """Return one row per HPA, with its last decision or the replica that owns it."""
    return wire.encode({"autoscalers": overview_rows(hpas, ownership)})


def overview_rows(hpas: HpaCache, ownership: Ownership | None = None) -> list[dict[str, object]]:
    """Return the rows of the overview page."""
    rows = []
    for hpa_state in sorted(hpas, key=lambda hpa_state: hpa_state.key):
        owner = ownership.describe_owner(hpa_state.key) if ownership is not None else ""
        rows.append(_spec_row(hpa_state) | ({"elsewhere": owner} if owner else _decision_row(hpa_state)))
    return rows


def explain_page(hpas: HpaCache, key: str) -> bytes | None:
    """Return the explanation of the last decision about an HPA."""
    hpa_state = _named(hpas, key)
    record = None if hpa_state is None else hpa_state.newest_record()
    if hpa_state is None or record is None:
        return None
    explanation = explain(record, dry_run=record.is_dry_run)
    return wire.encode(
        {
            "about": hpa_state.key,
            "text": str(explanation),
            "explanation": wire.to_builtins(explanation),
        }
    )


def records_page(hpas: HpaCache, key: str) -> bytes | None:
    """Return the last records of an HPA, one JSON object per line, oldest first."""
    hpa_state = _named(hpas, key)
    return None if hpa_state is None else b"".join(dumps(record) + b"\n" for record in hpa_state.records)


def _named(hpas: HpaCache, key: str) -> HpaState | None:
    namespace, _, name = key.partition("/")
    return hpas.named(namespace, name)


def _spec_row(hpa_state: HpaState) -> dict[str, object]:
    hpa = hpa_state.hpa
    return {
        "namespace": hpa.metadata.namespace,
        "name": hpa.metadata.name,
        "uid": hpa.metadata.uid,
        "native": hpa_state.is_native,
        "target": str(hpa.spec.scale_target_ref),
        "min": hpa.spec.min_replicas,
        "max": hpa.spec.max_replicas,
    }


def _decision_row(hpa_state: HpaState) -> dict[str, object]:
    record = hpa_state.newest_record()
    if record is None:
        return {}
    decision = record.decision
    return {
        "current": decision.current if decision.knows_replicas else None,
        "desired": decision.desired if decision.knows_replicas else None,
        "reason": str(decision.reason.code),
        "summary": summary_of(record.observation, decision),
    }
