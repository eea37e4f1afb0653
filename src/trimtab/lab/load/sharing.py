"""How a workload's load is divided over its ready pods (pure)."""

from collections.abc import Callable, Sequence

from trimtab.lab.load.plan import Even, HotShard, Leader, Share
from trimtab.lab.workloads.kinds import RunPod

LeaseHolder = Callable[[str, str], str]
"""Returns the holder of a lease, by namespace and name; empty if there is none."""


def nobody(_namespace: str, _lease: str) -> str:
    """Return that no lease is held."""
    return ""


def weights(share: Share, pods: Sequence[RunPod], holder: LeaseHolder = nobody) -> list[float]:
    """Return each pod's part of the load, in the order of `pods`; the parts add up to 1."""
    if not pods:
        return []
    match share:
        case Leader():
            leader = _leader(share, pods, holder)
            if leader is None or len(pods) == 1:
                return weights(Even(), pods)
            rest = (1.0 - share.share) / (len(pods) - 1)
            return [share.share if pod is leader else rest for pod in pods]
        case HotShard():
            hot = _by_ordinal(pods)[min(share.ordinal, len(pods) - 1)]
            total = len(pods) - 1 + share.weight
            return [(share.weight if pod is hot else 1.0) / total for pod in pods]
        case _:
            return [1.0 / len(pods)] * len(pods)


def _leader(share: Leader, pods: Sequence[RunPod], holder: LeaseHolder) -> RunPod | None:
    if not share.lease:
        return next((pod for pod in pods if pod.metadata.labels.get(share.label) == share.value), None)
    name = holder(pods[0].metadata.namespace, share.lease)
    # Many programs append something of their own to the pod's name, after an underscore.
    return next((pod for pod in pods if name.partition("_")[0] == pod.metadata.name), None)


def _by_ordinal(pods: Sequence[RunPod]) -> list[RunPod]:
    """Order pods by name, the shorter number first: web-2 comes before web-10."""
    return sorted(pods, key=lambda pod: (len(pod.metadata.name), pod.metadata.name))
