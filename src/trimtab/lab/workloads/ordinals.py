"""What a StatefulSet does next, given its pods by ordinal (pure)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtab.lab.workloads.kinds import PodSet, RunPod
from trimtab.lab.workloads.podstate import is_going, is_ready
from trimtab.lab.workloads.rollout import resolve
from trimtab.lab.workloads.templates import REVISION_HASH_LABEL

INDEX_LABEL = "apps.kubernetes.io/pod-index"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"


@dataclass(frozen=True, slots=True)
class Moves:
    """Ordinals to create, with whether they get the new template, and pods to delete."""

    create: tuple[tuple[int, bool], ...] = ()
    delete: tuple[RunPod, ...] = ()


def ordinal_of(name: str, pod: RunPod) -> int | None:
    """Return the ordinal in a pod's name."""
    match = re.fullmatch(rf"{re.escape(name)}-(\d+)", pod.metadata.name)
    return int(match[1]) if match else None


def next_moves(one: PodSet, pods: Mapping[int, RunPod], current: str, update: str) -> Moves:
    """Return the next step: fill up in order, then shrink from the end, then renew from the end.

    OrderedReady takes one step at a time and waits for each pod; Parallel fills up and shrinks all at once.
    """
    wanted = range(one.spec.ordinals.start, one.spec.ordinals.start + one.spec.replicas)
    filling, is_waiting = _fill(one, pods, wanted, current, update)
    if filling.create or filling.delete or is_waiting:
        return filling
    shrinking, is_waiting = _shrink(one, pods, wanted)
    if shrinking.delete or is_waiting:
        return shrinking
    return _renew(one, pods, wanted, update)


def _fill(
    one: PodSet, pods: Mapping[int, RunPod], wanted: Sequence[int], current: str, update: str
) -> tuple[Moves, bool]:
    create: list[tuple[int, bool]] = []
    delete: list[RunPod] = []
    is_ordered = one.spec.pod_management_policy == "OrderedReady"
    for ordinal in wanted:
        pod = pods.get(ordinal)
        if pod is None:
            create.append((ordinal, _is_new(one, ordinal, current, update)))
        elif pod.is_finished and not is_going(pod):
            delete.append(pod)  # it is made again under the same name once it is gone
        elif not is_ordered or _is_healthy(pod):
            continue
        if is_ordered:
            return Moves(tuple(create), tuple(delete)), True
    return Moves(tuple(create), tuple(delete)), False


def _is_new(one: PodSet, ordinal: int, current: str, update: str) -> bool:
    """Tell whether a missing pod gets the new template: not below the partition, not before its turn."""
    if current == update or one.spec.update_strategy.type == "OnDelete":
        return True
    return ordinal >= one.spec.ordinals.start + one.spec.update_strategy.rolling_update.partition


def _shrink(one: PodSet, pods: Mapping[int, RunPod], wanted: Sequence[int]) -> tuple[Moves, bool]:
    surplus = sorted((ordinal for ordinal in pods if ordinal not in wanted), reverse=True)
    if one.spec.pod_management_policy != "OrderedReady":
        return Moves(delete=tuple(pods[o] for o in surplus if not is_going(pods[o]))), False
    for ordinal in surplus:
        if is_going(pods[ordinal]):
            return Moves(), True  # the next one goes when this one is gone
        return Moves(delete=(pods[ordinal],)), True
    return Moves(), False


def _renew(one: PodSet, pods: Mapping[int, RunPod], wanted: Sequence[int], update: str) -> Moves:
    strategy = one.spec.update_strategy
    if strategy.type == "OnDelete":
        return Moves()
    most = _most_unavailable(one)
    unhealthy = sum(not _is_healthy(pods[ordinal]) for ordinal in wanted if ordinal in pods)
    delete: list[RunPod] = []
    for ordinal in reversed(wanted):
        pod = pods.get(ordinal)
        if ordinal < one.spec.ordinals.start + strategy.rolling_update.partition or pod is None:
            break
        if revision_of(pod) != update and not is_going(pod):
            # A broken pod may go beyond the limit only as the one being renewed: it is already unavailable.
            if unhealthy + len(delete) >= most and _is_healthy(pod):
                break
            delete.append(pod)
        if unhealthy + len(delete) >= most and not _is_healthy(pod):
            break
    return Moves(delete=tuple(delete))


def _most_unavailable(one: PodSet) -> int:
    value = one.spec.update_strategy.rolling_update.max_unavailable
    return max(resolve(value, one.spec.replicas, rounds_up=True), 1)


def revision_of(pod: RunPod) -> str:
    """Return the name part of the revision that a pod was made from."""
    return pod.metadata.labels.get(REVISION_HASH_LABEL, "")


def _is_healthy(pod: RunPod) -> bool:
    return pod.status.phase == "Running" and is_ready(pod) and not is_going(pod)
