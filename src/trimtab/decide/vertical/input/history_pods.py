"""Whose usage was it then: the control function asked about pods as they were, also of pods that are gone.

Of a pod that lives, owner and node are known; only its labels change. Of a pod that is gone, the labels are all that
is left: it belonged to the one target whose selector they match. Where that leaves a doubt, nobody learns from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec

from trimtab.decide.vertical.control.attribution import Attribution, attribute
from trimtab.decide.vertical.control.control import VpaClaim, VPAIndex
from trimtab.decide.vertical.control.controllers import (
    ControllerIndex,
    ControllerKey,
    topmost_controller,
)
from trimtab.decide.vertical.control.scope import NodeLabels, Scope
from trimtab.model.core.meta import ObjectMeta, OwnerReference
from trimtab.model.core.pod import Pod

Labels = Mapping[str, str]
Belonging = tuple[Labels, Attribution]


@dataclass(frozen=True)
class HistoricalPods:
    """The pods of one namespace, now and before."""

    namespace: str
    index: VPAIndex
    owners: ControllerIndex
    nodes: NodeLabels
    live: Mapping[str, Pod]
    told: frozenset[str]
    """Label keys that the history tells about; of others the present value is taken."""

    def attribute(self, name: str, labels: Labels | None) -> Belonging | None:
        """Return the labels a pod had and who learnt from it; None if that cannot be told."""
        pod = self.live.get(name)
        if pod is None:
            return None if labels is None else self._gone(name, labels)
        if labels is None and self._depends_on_labels(pod):
            return None
        then = self._overlay(pod.metadata.labels, labels)
        return then, self._ask(_relabelled(pod, then))

    def _overlay(self, present: Labels, then: Labels | None) -> Labels:
        if then is None:
            return present
        return {**{key: value for key, value in present.items() if key not in self.told}, **then}

    def _depends_on_labels(self, pod: Pod) -> bool:
        target = topmost_controller(pod, self.owners)
        claims = self.index.claims_on(target) if target else ()
        return any(isinstance(claim.scope, Scope) and claim.scope.pods is not None for claim in claims)

    def _gone(self, name: str, labels: Labels) -> Belonging | None:
        targets = [target for target, claims in self._targets.items() if _may_select(claims, labels)]
        if len(targets) != 1 or any(_asks_for_node(claim) for claim in self._targets[targets[0]]):
            return None
        owner = OwnerReference(kind=targets[0].kind, name=targets[0].name, controller=True)
        meta = ObjectMeta(name=name, namespace=self.namespace, labels=dict(labels), owner_references=(owner,))
        return labels, self._ask(Pod(metadata=meta))

    @cached_property
    def _targets(self) -> dict[ControllerKey, tuple[VpaClaim, ...]]:
        return {
            target: claims
            for target, claims in self.index.by_target.items()
            if target.namespace == self.namespace
        }

    def _ask(self, pod: Pod) -> Attribution:
        return attribute(pod, self.index, self.owners, self.nodes)


def _may_select(claims: tuple[VpaClaim, ...], labels: Labels) -> bool:
    return any(claim.selector is not None and claim.selector.matches(labels) for claim in claims)


def _asks_for_node(claim: VpaClaim) -> bool:
    return isinstance(claim.scope, Scope) and claim.scope.nodes is not None


def _relabelled(pod: Pod, labels: Labels) -> Pod:
    if pod.metadata.labels == labels:
        return pod
    metadata = msgspec.structs.replace(pod.metadata, labels=dict(labels))
    return msgspec.structs.replace(pod, metadata=metadata)
