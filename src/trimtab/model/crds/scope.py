"""The definition of VPAScope: two selectors that must be selectors."""

from trimtab.model.crds.definition import AGE, APPROVAL, Column, Crd
from trimtab.model.crds.rules import described
from trimtab.model.crds.schema import Notes
from trimtab.model.crds.selectors import SELECTOR_FIELDS, SELECTOR_TYPES
from trimtab.model.vpa.types import VPAScope, VPAScopeSpec

_SCOPE_NOTES = Notes(
    types={
        VPAScope: {"required": ["spec"]},
        **SELECTOR_TYPES,
    },
    fields={
        (VPAScopeSpec, "podSelector"): described(
            "Labels of the pods that are meant; absent: no restriction."
        ),
        (VPAScopeSpec, "nodeSelector"): described(
            "Labels of the nodes whose pods are meant; absent: no restriction. Both selectors must match."
        ),
        **SELECTOR_FIELDS,
    },
)

VPA_SCOPES = Crd(
    group="autoscaling.k8s.io",
    version="v1",
    kind=VPAScope,
    plural="vpascopes",
    notes=_SCOPE_NOTES,
    has_status_subresource=False,
    annotations={APPROVAL: "unapproved, VPAScope is a proposal (kubernetes/autoscaler#8956)"},
    columns=(
        Column("Pods", ".spec.podSelector.matchLabels"),
        Column("Nodes", ".spec.nodeSelector.matchLabels"),
        AGE,
    ),
)
