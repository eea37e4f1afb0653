"""The answers of plug-ins that one decision depends on.

They are part of the observation. So a record has them, and a decision can be made again where the plug-in is not installed.
"""

from typing import Any

from trimtab.model.hpa import replica_policies
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json.wire import Wire

NODES_UNREADABLE = "NodesUnreadable"
"""The reason of a filter that needs nodes which cannot be read."""
INVALID_POLICIES = "InvalidReplicaPolicies"
"""The reason of an annotation with replica policies that cannot be read."""

POLICY = "replica policy"
"""What precedes the name of a policy in conditions and events."""


class NodeSnapshot(Wire):
    """A node of observed pods, reduced to what pod filters see."""

    is_unschedulable: bool = False
    labels: dict[str, str] = {}


class FilterAnswer(Wire):
    """The answer of the pod filter that `selectionStrategy` names."""

    plugin: str
    version: str = ""
    """The version of the plug-in's package; empty if it is not loaded."""
    left_out: dict[str, str] = {}
    """The pods that do not count, by name, with the reason."""
    failure: str = ""
    """Why there is no answer; empty if there is one."""
    reason: str = ""
    """The reason of the condition, if there is no answer."""


class PolicyAnswer(Wire):
    """The answer of one replica policy of the spec."""

    plugin: str
    version: str = ""
    """The version of the plug-in's package; empty if it is not loaded."""
    replicas: int | None = None
    """What the policy asks for; None if it asks for nothing, or failed."""
    reason: str = ""
    """Why it asks for that, or the reason of the condition if it failed."""
    memory: Any = None
    """What the policy remembers."""
    failure: str = ""
    """Why there is no answer; empty if there is one."""

    @property
    def name(self) -> str:
        """Return the policy as conditions and events call it."""
        return f"{POLICY} {self.plugin}"


def unread_policies(hpa: HorizontalPodAutoscaler) -> tuple[PolicyAnswer, ...]:
    """Return the failure of a native HPA's annotation that cannot be read, which may name any policy."""
    error = replica_policies.annotation_error(hpa.spec, hpa.metadata.annotations)
    if not error:
        return ()
    name = replica_policies.ANNOTATION
    failure = f"annotation {name} cannot be read: {error}"
    return (PolicyAnswer(plugin=name, failure=failure, reason=INVALID_POLICIES),)
