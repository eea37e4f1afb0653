"""Which pods a controller may call its own: owned and matching, or matching and owned by nobody."""

from trimtab.cluster.resource import Json
from trimtab.lab.workloads.kinds import RunPod
from trimtab.lab.workloads.mirror import Mirror, controller_uid
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector


async def claim_pods(pods: Mirror[RunPod], namespace: str, owner: Json, selector: Selector) -> list[RunPod]:
    """Return the owner's pods, after adopting matching orphans and releasing what no longer matches."""
    claimed: list[RunPod] = []
    for pod in pods.owned(owner["uid"]):
        if selector.matches(pod.metadata.labels):
            claimed.append(pod)
        elif pod.metadata.deletion_timestamp is None:
            kept = [one for one in pod.metadata.owner_references if one.uid != owner["uid"]]
            await pods.patch(pod, {"metadata": {"ownerReferences": wire.to_builtins(kept) or None}})
    for pod in pods.orphans(namespace):
        is_active = pod.metadata.deletion_timestamp is None and not pod.is_finished
        if is_active and selector.matches(pod.metadata.labels):
            others = wire.to_builtins(pod.metadata.owner_references)
            claimed.append(await pods.patch(pod, {"metadata": {"ownerReferences": [*others, owner]}}))
    return claimed


def may_adopt(pod: RunPod) -> bool:
    """Tell whether some controller could want the pod: nobody controls it."""
    return not controller_uid(pod)
