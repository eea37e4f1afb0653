"""Pods that stay because their replacement would not be admitted: the updater's note on the pod, and whose VPA it concerns.

The updater finds out, and the recommender writes the status of VPAs. The note passes between the two, and it
survives a restart of either.
"""

from collections.abc import Collection, Iterable, Mapping

from trimtab.decide.vertical.control.control import VPAIndex, controlling_vpa
from trimtab.decide.vertical.control.controllers import ControllerIndex, creator_of
from trimtab.decide.vertical.control.scope import NodeLabels
from trimtab.model.core.pod import Pod

REFUSAL_ANNOTATION = "trimtab.dev/replacement-refused"


def refusal_notes(
    pods: Iterable[Pod], asked: Mapping[str, str], to_evict: Collection[str]
) -> list[tuple[Pod, str | None]]:
    """Return the pods whose note must change, each with its new note; None takes the note away.

    `asked` holds why each replacement would be refused, by pod, empty where a dry run was admitted. Pods of one creator
    have one template: where a replacement is admitted now, the notes of those not asked about end, too.
    """
    pods = list(pods)
    admitted = {
        creator_of(pod)
        for pod in pods
        if not asked.get(pod.metadata.key, "unknown") and creator_of(pod) is not None
    }
    found: list[tuple[Pod, str | None]] = []
    for pod in pods:
        key, noted = pod.metadata.key, pod.metadata.annotations.get(REFUSAL_ANNOTATION)
        stays = key in to_evict and creator_of(pod) not in admitted
        wanted = asked.get(key, noted if stays else None) or None
        if wanted != noted:
            found.append((pod, wanted))
    return found


def refusals_by_vpa(
    pods: Iterable[Pod], index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels
) -> dict[str, str]:
    """Return what to say about each VPA whose pods stay: the first note by the name of its pod, and how many follow."""
    notes: dict[str, list[tuple[str, str]]] = {}
    for pod in pods:
        note = pod.metadata.annotations.get(REFUSAL_ANNOTATION)
        if not note or pod.metadata.deletion_timestamp is not None or pod.is_finished:
            continue
        vpa = controlling_vpa(pod, index, owners, nodes).key
        if vpa is not None:
            notes.setdefault(vpa, []).append((pod.name, note))
    return {vpa: _message(sorted(found)) for vpa, found in notes.items()}


def _message(notes: list[tuple[str, str]]) -> str:
    (_, first), *others = notes
    names = ", ".join(name for name, _ in others[:_NAMED])
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return f"{first}; the same goes for {names}{more}" if others else first


_NAMED = 3
"""How many further pods are named."""
