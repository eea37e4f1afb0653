"""VPAScope: which pods of a workload a VPA claims.

A VPA without `vpaScope` claims all pods of its target. A VPA with a scope claims the pods that match both selectors of
the scope. Whether an unusable scope (missing, malformed, gate off) has a pod is not known, so pods that no other scope has stay as
they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError
from trimtab.model.vpa.types import SCOPE_ANNOTATION, VerticalPodAutoscaler, VPAConditionType, VPAScope

GATE = "VPASelectorRefinement"
_NODE_NAME_FIELD = "metadata.name"
_BY_FIELD, _BY_ANNOTATION = "the pods of VPAScope ", ", named by annotation"


@dataclass(frozen=True)
class Scope:
    """A usable scope. Both selectors must match, an absent selector matches all."""

    name: str = ""
    pods: Selector | None = None
    nodes: Selector | None = None

    @cached_property
    def level(self) -> int:
        """1 if a selector restricts, else 0. More requirements do not raise it (ruling 9.7)."""
        return int(
            any(selector is not None and not selector.is_empty for selector in (self.pods, self.nodes))
        )

    @cached_property
    def pods_mismatch(self) -> str:
        """The reason for pods outside the scope by their labels, cached for thousands of pods."""
        return f"labels do not match podSelector {self.pods} of VPAScope {self.name}"


@dataclass(frozen=True)
class ScopeError:
    """Why a VPA's scope is unusable, for its condition ConfigUnsupported."""

    reason: str
    message: str


WHOLE_TARGET = Scope()
NodeLabels = Mapping[str, Mapping[str, str]]
"""Labels of every known node, by node name."""


def resolve_scope(
    vpa: VerticalPodAutoscaler, scopes: Mapping[str, VPAScope], *, is_gate_on: bool
) -> Scope | ScopeError:
    """Return the scope that a VPA names. `scopes` holds VPAScopes by `namespace/name`."""
    names = vpa.scope_names
    if not names:
        return _pruned(vpa) or WHOLE_TARGET
    name = names[0]
    if not is_gate_on:
        return ScopeError(
            "ScopeDisabled",
            f"VPA {vpa.key} names VPAScope {name!r} but feature gate {GATE} is off; "
            "the VPA does nothing until the gate is on or it names no scope",
        )
    if len(names) > 1:
        return ScopeError(
            "ScopeAmbiguous",
            f"spec.vpaScope of VPA {vpa.key} names {name!r} and its annotation {SCOPE_ANNOTATION} {names[1]!r}; "
            "make them equal or remove one",
        )
    scope = scopes.get(f"{vpa.metadata.namespace}/{name}")
    if scope is None:
        return ScopeError(
            "ScopeNotFound",
            f"VPA {vpa.key} names VPAScope {name!r}, which does not exist in namespace "
            f"{vpa.metadata.namespace}; create it or correct the name",
        )
    try:
        return Scope(name, _selector(scope.spec.pod_selector), _selector(scope.spec.node_selector))
    except SelectorError as error:
        return ScopeError(
            "ScopeInvalid",
            f"VPAScope {scope.metadata.key}, which VPA {vpa.key} names, has an invalid selector: {error}",
        )


def describe_named_scope(vpa: VerticalPodAutoscaler, name: str) -> str:
    """Return which pods a VPA is for, as the message of condition ComputedFor."""
    if not name:
        return "all pods of the target"
    return f"{_BY_FIELD}{name}{'' if vpa.spec.vpa_scope is not None else _BY_ANNOTATION}"


def _pruned(vpa: VerticalPodAutoscaler) -> ScopeError | None:
    """Return an error if the spec lost its scope without an edit.

    A definition without the field, as upstream's is, makes the API server drop it from every VPA. The generation stays.
    """
    condition, status = vpa.status.condition(VPAConditionType.COMPUTED_FOR), vpa.status
    text = condition.message if condition is not None else ""
    is_edited = status.observed_generation not in (None, vpa.metadata.generation)
    if not text.startswith(_BY_FIELD) or text.endswith(_BY_ANNOTATION) or is_edited:
        return None
    return ScopeError(
        "ScopePruned",
        f"VPA {vpa.key} was for {text}, and lost spec.vpaScope without an edit: the definition of its kind no longer "
        f"has the field. Name the scope by annotation {SCOPE_ANNOTATION}; if it is for all pods now, edit its spec",
    )


def _selector(selector: LabelSelector | None) -> Selector | None:
    return None if selector is None else Selector.from_label_selector(selector)


class Match(NamedTuple):
    """Whether a VPA matches a pod, None if that is not known, and why if it does not certainly match."""

    matched: bool | None
    reason: str = ""


MATCH = Match(True)


def match(scope: Scope, pod: Pod, nodes: NodeLabels) -> Match:
    """Return whether a pod is inside the scope. A pod without a node is on none."""
    if scope.pods is not None and not scope.pods.matches(pod.metadata.labels):
        return Match(False, scope.pods_mismatch)
    if scope.nodes is None:
        return MATCH
    node = node_name_of(pod)
    if not node:
        return Match(
            False, f"its node is not known yet, so nodeSelector of VPAScope {scope.name} cannot match"
        )
    if node not in nodes:
        return Match(
            None, f"node {node} is not known, so nodeSelector of VPAScope {scope.name} cannot be compared"
        )
    if not scope.nodes.matches(nodes[node]):
        return Match(
            False, f"labels of node {node} do not match nodeSelector {scope.nodes} of VPAScope {scope.name}"
        )
    return MATCH


def node_name_of(pod: Pod) -> str:
    """Return the node of a pod, for an unbound pod of a DaemonSet from its affinity."""
    if pod.spec.node_name:
        return pod.spec.node_name
    if pod.spec.affinity is None:
        return ""
    required = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    names = {
        value
        for term in required.node_selector_terms
        for requirement in term.match_fields
        if requirement.key == _NODE_NAME_FIELD and requirement.operator == "In"
        for value in requirement.values
    }
    # Terms are alternatives, so two names leave the node open.
    is_settled = len(names) == 1 and all(term.match_fields for term in required.node_selector_terms)
    return next(iter(names)) if is_settled else ""
