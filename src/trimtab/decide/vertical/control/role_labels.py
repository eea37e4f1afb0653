"""Roles from Leases: which pod has the label of the role that a Lease assigns.

A workload declares the role by annotations on its pod template. Each pod carries its own declaration, and pods without
one are never changed. Demotions come before the promotion, so two pods never have the label at the same time.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from trimtab.model.core.pod import Pod
from trimtab.model.labels.names import label_key_problems, label_value_problems

LEASE_ANNOTATION = "roles.trimtab.dev/lease"
"""Name of the Lease, in the pod's namespace, whose holder has the role."""
LABEL_ANNOTATION = "roles.trimtab.dev/label"
"""The label of the holder, as `key=value`."""
OTHERS_ANNOTATION = "roles.trimtab.dev/others"
"""The value of that label on the other pods. Without it they do not have the label."""
DEFAULT_LABEL = "role=leader"
_LONGEST_HOST_NAME = 63


@dataclass(frozen=True, order=True)
class RoleDeclaration:
    """The role that a pod's annotations declare."""

    namespace: str
    lease: str
    key: str
    value: str
    others: str | None = None


@dataclass(frozen=True)
class InvalidDeclaration:
    """Why a declaration is invalid."""

    message: str


@dataclass(frozen=True)
class Relabel:
    """Set a label of a pod, or remove it if the value is None."""

    pod: Pod
    key: str
    value: str | None


def parse_declaration(pod: Pod) -> RoleDeclaration | InvalidDeclaration | None:
    """Return the declaration of a pod, or None without one."""
    annotations = pod.metadata.annotations
    lease = annotations.get(LEASE_ANNOTATION)
    if not lease:
        return None
    key, sign, value = annotations.get(LABEL_ANNOTATION, DEFAULT_LABEL).partition("=")
    others = annotations.get(OTHERS_ANNOTATION)
    problems = [*label_key_problems(key), *label_value_problems(value), *label_value_problems(others or "")]
    if not sign or not value:
        problems.append("it has to be key=value")
    if others == value:
        problems.append(f"{OTHERS_ANNOTATION} must differ from the holder's value")
    if problems:
        return InvalidDeclaration(
            f"annotation {LABEL_ANNOTATION} of pod {pod.metadata.key} cannot be used: {'; '.join(problems)}"
        )
    return RoleDeclaration(pod.metadata.namespace, lease, key, value, others)


def find_holder(pods: Iterable[Pod], identity: str) -> Pod | None:
    """Return the pod whose name is the Lease's holder identity, up to an underscore.

    client-go uses the host name, which the kubelet cuts to 63 characters. If two pods share these characters, neither is
    the holder.
    """
    name = identity.partition("_")[0]
    running = [pod for pod in pods if name and not pod.is_finished]
    named = [pod for pod in running if pod.name == name]
    holders = named or [pod for pod in running if _host_name(pod.name) == name]
    return holders[0] if len(holders) == 1 else None


def _host_name(pod: str) -> str:
    return pod if len(pod) <= _LONGEST_HOST_NAME else pod[:_LONGEST_HOST_NAME].rstrip("-.")


def plan_roles(
    declaration: RoleDeclaration, pods: Sequence[Pod], identity: str, selector_keys: Collection[str] = ()
) -> tuple[Relabel, ...] | InvalidDeclaration:
    """Return the label changes, in order, that leave the role to the holder alone."""
    if declaration.key in selector_keys:
        return InvalidDeclaration(
            f"label {declaration.key!r} is part of a selector that owns the pods; changing it would orphan them. "
            f"Choose another label in annotation {LABEL_ANNOTATION}"
        )
    holder = find_holder(pods, identity)
    demotions = []
    promotion: tuple[Relabel, ...] = ()
    for pod in sorted(pods, key=lambda pod: pod.name):
        current = pod.metadata.labels.get(declaration.key)
        if holder is not None and pod.name == holder.name:
            if current != declaration.value:
                promotion = (Relabel(pod, declaration.key, declaration.value),)
        elif current != declaration.others and (current == declaration.value or declaration.others):
            demotions.append(Relabel(pod, declaration.key, declaration.others))
    return (*demotions, *promotion)
