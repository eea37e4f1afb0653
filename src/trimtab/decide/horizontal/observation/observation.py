"""Everything one decision depends on, frozen and serialisable."""

from typing import Literal

import msgspec

from trimtab.decide.horizontal.memory import EMPTY, NOBODY, Memory, owner_of
from trimtab.decide.horizontal.observation.owners import ConflictingHpa, OwnerLookup, Target
from trimtab.decide.horizontal.observation.plugin_answers import (
    FilterAnswer,
    NodeSnapshot,
    PolicyAnswer,
    unread_policies,
)
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.observation.samples import MetricSamples
from trimtab.decide.horizontal.reasons import Rivals
from trimtab.decide.horizontal.rules import DEFAULT_SETTINGS, HpaSettings, Rules
from trimtab.model.core.meta import group_of
from trimtab.model.core.workloads import Scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.selection_strategy import NATIVE_GROUP
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json.wire import Wire


class ScaleFailure(Wire):
    """Why the scale could not be read, and at which step."""

    message: str
    step: Literal["parse", "map", "query"] = "query"
    """`parse`: the reference's apiVersion; `map`: its kind; `query`: the scale itself."""
    advice: str = ""
    """What lets the scale be read, where that is known. Upstream's controller gives no advice."""


NOT_READ = ScaleFailure(message="the scale was not read")


NO_RIVALS = Rivals()


class StaleInput(Wire):
    """A cache that the decision depends on, and that may lack recent changes."""

    input: Literal["hpa", "target", "pods"]
    message: str
    """Which cache it is, and why it is stale. It does not change while the cause is the same."""


class Observation(Wire):
    """One autoscaler, its target, and what was read about both."""

    hpa: HorizontalPodAutoscaler
    scale: Scale | None = None
    scale_failure: ScaleFailure | None = None
    pods: tuple[PodSnapshot, ...] = ()
    """The pods of the namespace that match the scale's selector."""
    owners: dict[str, OwnerLookup] = msgspec.field(default_factory=dict)
    """The result of each owner lookup by its `owner_key`; only OwnerReference needs them."""
    nodes: dict[str, NodeSnapshot] | None = None
    """The nodes of the pods by name, for pod filters that need them; None if the filter does not."""
    filter_answer: FilterAnswer | None = None
    """The answer of the pod filter, if the selection strategy names a plug-in."""
    policy_answers: tuple[PolicyAnswer, ...] = ()
    """The answers of the replica policies of the spec, in its order; empty if the decision did not need them."""
    conflicting_hpas: tuple[ConflictingHpa, ...] = ()
    """Other HPAs of the namespace that may count the same pods."""
    samples: tuple[MetricSamples, ...] = ()
    """The samples of each metric of the spec, in its order."""
    stale_inputs: tuple[StaleInput, ...] = ()
    """The caches behind this observation that are stale."""
    memory: Memory = EMPTY
    rivals: Rivals = NO_RIVALS
    settings: HpaSettings = DEFAULT_SETTINGS
    gates: FeatureGates = FeatureGates()
    rules: Rules = Rules.TRIMTAB

    @property
    def target(self) -> Target:
        """Return the workload that is scaled."""
        reference = self.hpa.spec.scale_target_ref
        return Target(
            api_version=reference.api_version,
            kind=reference.kind,
            name=reference.name,
            uid=self.scale.metadata.uid if self.scale else "",
        )

    @property
    def current(self) -> int:
        """Return the replicas that there are, or 0 if the scale could not be read."""
        return self.scale.spec.replicas if self.scale else 0

    @property
    def has_other_target(self) -> bool:
        """Return whether the memory, and so the zero mark, is about another target of the same HPA."""
        before, owner = self.memory.owner, owner_of(self.hpa)
        return self.rules.ours and before != NOBODY and before.uid == owner.uid and before != owner

    @property
    def is_native(self) -> bool:
        """Return whether the autoscaler is of Kubernetes' own kind."""
        return group_of(self.hpa.api_version) == NATIVE_GROUP

    @property
    def reference(self) -> str:
        """Return the target as errors call it: `Kind/namespace/name`."""
        target = self.hpa.spec.scale_target_ref
        return f"{target.kind}/{self.hpa.metadata.namespace}/{target.name}"


def policies_of(observation: Observation) -> tuple[PolicyAnswer, ...]:
    """Return the answers of the replica policies, or the failure of an annotation that cannot be read."""
    if not observation.hpa.metadata.annotations or not observation.is_native:
        return observation.policy_answers
    return (*observation.policy_answers, *unread_policies(observation.hpa))
