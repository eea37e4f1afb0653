"""Finds which VPA controlled a pod at a past time, deleted pods included.

The owner and the node of a live pod are known, only its labels change. Of a deleted pod only the labels are known: it
belonged to the single target whose selector matches them. In case of doubt its samples are skipped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec

from trimtab.decide.vertical.control.attribution import Attribution, attribution_of
from trimtab.decide.vertical.control.claims import VpaClaim, VPAIndex
from trimtab.decide.vertical.control.control import control_of
from trimtab.decide.vertical.control.controllers import ControllerIndex, ControllerKey, topmost_controller
from trimtab.decide.vertical.control.scope import NodeLabels, Scope
from trimtab.model.core.meta import ObjectMeta, OwnerReference
from trimtab.model.core.pod import Pod

Labels = Mapping[str, str]
AttributedLabels = tuple[Labels, Attribution]
"""The labels of a pod at a past time and the VPAs that its samples belong to."""


@dataclass(frozen=True)
class HistoricalPods:
    """The pods of a namespace, live and deleted."""

    namespace: str
    index: VPAIndex
    owners: ControllerIndex
    nodes: NodeLabels
    live: Mapping[str, Pod]
    recorded_labels: frozenset[str]
    """Label keys that the history records. Of other labels the present value counts."""

    def attribute(self, name: str, labels: Labels | None) -> AttributedLabels | None:
        """Return the labels a pod had and its VPAs, or None if the VPAs are in doubt.

        `labels` are the recorded labels, None if none were recorded.
        """
        pod = self.live.get(name)
        if pod is None:
            return None if labels is None else self._attribute_deleted(name, labels)
        if labels is None and self._depends_on_labels(pod):
            return None
        past_labels = self._overlay(pod.metadata.labels, labels)
        return past_labels, self._attribute(_with_labels(pod, past_labels))

    def _overlay(self, present: Labels, recorded: Labels | None) -> Labels:
        if recorded is None:
            return present
        kept = {key: value for key, value in present.items() if key not in self.recorded_labels}
        return {**kept, **recorded}

    def _depends_on_labels(self, pod: Pod) -> bool:
        target = topmost_controller(pod, self.owners)
        claims = self.index.claims_on(target) if target else ()
        return any(isinstance(claim.scope, Scope) and claim.scope.pods is not None for claim in claims)

    def _attribute_deleted(self, name: str, labels: Labels) -> AttributedLabels | None:
        targets = [target for target, claims in self._targets.items() if _any_selects(claims, labels)]
        if len(targets) != 1 or any(_has_node_scope(claim) for claim in self._targets[targets[0]]):
            return None
        owner = OwnerReference(kind=targets[0].kind, name=targets[0].name, controller=True)
        meta = ObjectMeta(name=name, namespace=self.namespace, labels=dict(labels), owner_references=(owner,))
        return labels, self._attribute(Pod(metadata=meta))

    @cached_property
    def _targets(self) -> dict[ControllerKey, tuple[VpaClaim, ...]]:
        return {
            target: claims
            for target, claims in self.index.by_target.items()
            if target.namespace == self.namespace
        }

    def _attribute(self, pod: Pod) -> Attribution:
        return attribution_of(control_of(pod, self.index, self.owners, self.nodes))


def _any_selects(claims: tuple[VpaClaim, ...], labels: Labels) -> bool:
    return any(claim.selector is not None and claim.selector.matches(labels) for claim in claims)


def _has_node_scope(claim: VpaClaim) -> bool:
    return isinstance(claim.scope, Scope) and claim.scope.nodes is not None


def _with_labels(pod: Pod, labels: Labels) -> Pod:
    if pod.metadata.labels == labels:
        return pod
    metadata = msgspec.structs.replace(pod.metadata, labels=dict(labels))
    return msgspec.structs.replace(pod, metadata=metadata)
