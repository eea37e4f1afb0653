"""Pods that are not evicted because their replacement would be refused.

The updater finds the refusal and writes it into an annotation of the pod. The recommender reads the annotation and
writes the status of the VPA. The annotation survives a restart of either.
"""

from collections.abc import Collection, Iterable, Mapping

from trimtab.decide.vertical.control.claims import VPAIndex
from trimtab.decide.vertical.control.control import control_of
from trimtab.decide.vertical.control.controllers import ControllerIndex, creator_of
from trimtab.decide.vertical.control.scope import NodeLabels
from trimtab.model.core.pod import Pod

REFUSED_ANNOTATION = "trimtab.dev/replacement-refused"
_NAMED = 3
"""How many further pods a message names."""


def changed_annotations(
    pods: Iterable[Pod], checked: Mapping[str, str], to_evict: Collection[str]
) -> list[tuple[Pod, str | None]]:
    """Return the pods whose annotation must change, each with its new value.

    None removes the annotation. `checked` holds the refusal of each replacement by pod, empty where a dry run was admitted. Pods of one controller
    have one template: where a replacement is admitted now, the annotations of unchecked pods are removed, too.
    """
    pods = list(pods)
    admitted = {
        creator_of(pod)
        for pod in pods
        if not checked.get(pod.metadata.key, "unknown") and creator_of(pod) is not None
    }
    changed: list[tuple[Pod, str | None]] = []
    for pod in pods:
        key, current = pod.metadata.key, pod.metadata.annotations.get(REFUSED_ANNOTATION)
        stays = key in to_evict and creator_of(pod) not in admitted
        wanted = checked.get(key, current if stays else None) or None
        if wanted != current:
            changed.append((pod, wanted))
    return changed


def refusals_by_vpa(
    pods: Iterable[Pod], index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels
) -> dict[str, str]:
    """Return one message per VPA: the refusal of its first pod by name, and the other pods."""
    refusals: dict[str, list[tuple[str, str]]] = {}
    for pod in pods:
        refusal = pod.metadata.annotations.get(REFUSED_ANNOTATION)
        if not refusal or pod.metadata.deletion_timestamp is not None or pod.is_finished:
            continue
        vpa = control_of(pod, index, owners, nodes).key
        if vpa is not None:
            refusals.setdefault(vpa, []).append((pod.name, refusal))
    return {vpa: _message(sorted(pairs)) for vpa, pairs in refusals.items()}


def _message(refusals: list[tuple[str, str]]) -> str:
    (_, first), *others = refusals
    names = ", ".join(name for name, _ in others[:_NAMED])
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return f"{first}; the same goes for {names}{more}" if others else first
