"""The protocol of pod filters: which of the pods that match the target's labels count (KEP-5625).

A filter is a pure function. It returns the pods that do not count, each with its reason; all others count:

    def keep_not_draining(seen: PodFilterInput) -> Mapping[str, str]:
        return {pod.name: "its node is drained" for pod in seen.pods if pod.node and pod.node.is_unschedulable}

If it cannot decide, it raises `CannotFilterError` with the reason: then all pods count and the replicas are not lowered.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from trimtab.model.core.meta import OwnerReference
from trimtab.plugins.answers import LONGEST_REASON, check_reason
from trimtab.plugins.errors import DeclinedError, WrongAnswerError, wrong_type

_EMPTY: Mapping[str, str] = {}
NODES_NOT_DECLARED = "pod.node is None without @declare(needs_nodes=True)"
"""What a filter gets to read that uses nodes and does not declare it."""


class CannotFilterError(DeclinedError):
    """The filter cannot decide which pods count; the message is the reason."""


class FilterNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The node of a pod, for filters that declare `needs_nodes`."""

    name: str
    is_unschedulable: bool = False
    """Whether the node is cordoned, as before it is drained."""
    labels: Mapping[str, str] = _EMPTY


class FilterPod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod as filters see it."""

    name: str
    labels: Mapping[str, str] = _EMPTY
    phase: str = ""
    is_ready: bool = False
    is_deleted: bool = False
    """Whether the pod has a deletion timestamp."""
    started: float | None = None
    """Seconds since 1970."""
    owners: tuple[OwnerReference, ...] = ()
    """What the pod names as its owners; with `needs_owners` also their owners, upwards."""
    node_name: str = ""
    node: FilterNode | None = None
    """None if the filter does not declare `needs_nodes`, or the pod has no node that is known."""


class FilterTarget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The workload that is scaled."""

    namespace: str
    kind: str
    name: str
    api_version: str = ""
    uid: str = ""
    replicas: int = 0


class PodFilterInput(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything that a filter sees."""

    pods: tuple[FilterPod, ...]
    target: FilterTarget


SeenT_contra = TypeVar("SeenT_contra", contravariant=True)


class PodFilter(Protocol[SeenT_contra]):
    """Returns the pods that do not count, by name, with the reason of each.

    Plug-ins see a `PodFilterInput`. The two strategies of Trimtab itself see the whole observation.
    """

    def __call__(self, seen: SeenT_contra, /) -> Mapping[str, str]:
        """Return the reason of each pod that does not count."""
        ...


def check_left_out(answer: Any, pods: Sequence[FilterPod]) -> dict[str, str]:
    """Return the answer of a filter about these pods, or raise WrongAnswerError."""
    if not isinstance(answer, Mapping):
        raise wrong_type(answer, "a mapping of pod names to reasons")
    if not answer:
        return {}
    names = {pod.name: pod.name for pod in pods}
    left_out: dict[str, str] = {}
    for key, reason in answer.items():
        pod = names.get(key)  # our own text, whatever class the key has
        if pod is None:
            raise WrongAnswerError(f"{str(key)[:LONGEST_REASON]!r}, which is none of the pods it was given")
        left_out[pod] = check_reason(reason, missing=f"no reason why pod {pod} does not count")
    return left_out
