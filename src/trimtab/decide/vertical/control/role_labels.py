"""Roles from Leases: which pod should carry the label of the role that a Lease gives away.

A workload declares it by annotations on its pod template, so each pod carries its own declaration and no other pod is
ever touched. Demotions come before the promotion: at no moment do two pods carry the label.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from trimtab.model.core.pod import Pod
from trimtab.model.labels.names import label_key_problems, label_value_problems

LEASE_ANNOTATION = "roles.trimtab.dev/lease"
"""Name of the Lease, in the pod's namespace, whose holder plays the role."""
LABEL_ANNOTATION = "roles.trimtab.dev/label"
"""The label that the holder gets, as `key=value`."""
OTHERS_ANNOTATION = "roles.trimtab.dev/others"
"""The value of that label on the other pods; without it they do not have the label."""
DEFAULT_LABEL = "role=leader"
_LONGEST_HOST_NAME = 63


@dataclass(frozen=True, order=True)
class Declaration:
    """What a pod's annotations ask for."""

    namespace: str
    lease: str
    key: str
    value: str
    others: str | None = None


@dataclass(frozen=True)
class Malformed:
    """A declaration that cannot be followed, and why."""

    message: str


@dataclass(frozen=True)
class Relabel:
    """Set a label of a pod, or take it off if the value is None."""

    pod: Pod
    key: str
    value: str | None


def declaration_of(pod: Pod) -> Declaration | Malformed | None:
    """Read what a pod declares; None if it declares nothing."""
    notes = pod.metadata.annotations
    lease = notes.get(LEASE_ANNOTATION)
    if not lease:
        return None
    key, sign, value = notes.get(LABEL_ANNOTATION, DEFAULT_LABEL).partition("=")
    others = notes.get(OTHERS_ANNOTATION)
    problems = [*label_key_problems(key), *label_value_problems(value), *label_value_problems(others or "")]
    if not sign or not value:
        problems.append("it has to be key=value")
    if others == value:
        problems.append(f"{OTHERS_ANNOTATION} must differ from the holder's value")
    if problems:
        return Malformed(
            f"annotation {LABEL_ANNOTATION} of pod {pod.metadata.key} cannot be used: {'; '.join(problems)}"
        )
    return Declaration(pod.metadata.namespace, lease, key, value, others)


def holder_among(pods: Iterable[Pod], identity: str) -> Pod | None:
    """Return the pod that holds the Lease: leader election names it, alone or followed by `_` and a unique part.

    No pod name holds an underscore. client-go takes the host name, which the kubelet cuts to 63 characters: of a pod with
    a longer name only those are there. Two pods with the same ones cannot be told apart, and none of them is the holder.
    """
    name = identity.partition("_")[0]
    running = [pod for pod in pods if name and not pod.is_finished]
    named = [pod for pod in running if pod.name == name]
    found = named or [pod for pod in running if host_name(pod.name) == name]
    return found[0] if len(found) == 1 else None


def host_name(pod: str) -> str:
    """Return the host name that the kubelet gives a pod of this name."""
    return pod if len(pod) <= _LONGEST_HOST_NAME else pod[:_LONGEST_HOST_NAME].rstrip("-.")


def plan_roles(
    declaration: Declaration, pods: Sequence[Pod], identity: str, selector_keys: Collection[str] = ()
) -> tuple[Relabel, ...] | Malformed:
    """Return the changes, in order, that make exactly the holder carry the role; nobody if nobody holds the Lease."""
    if declaration.key in selector_keys:
        return Malformed(
            f"label {declaration.key!r} is part of a selector that owns the pods; changing it would orphan them. "
            f"Choose another label in annotation {LABEL_ANNOTATION}"
        )
    holder = holder_among(pods, identity)
    demotions = []
    promotion: tuple[Relabel, ...] = ()
    for pod in sorted(pods, key=lambda one: one.name):
        current = pod.metadata.labels.get(declaration.key)
        if holder is not None and pod.name == holder.name:
            if current != declaration.value:
                promotion = (Relabel(pod, declaration.key, declaration.value),)
        elif current != declaration.others and (current == declaration.value or declaration.others):
            demotions.append(Relabel(pod, declaration.key, declaration.others))
    return (*demotions, *promotion)
