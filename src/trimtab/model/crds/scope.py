"""The definition of VPAScope: two selectors that must be selectors."""

from trimtab.model.crds.definition import AGE, APPROVAL, Column, Crd
from trimtab.model.crds.rules import (
    LABEL_KEY,
    LABEL_KEY_LENGTH,
    LABEL_LENGTH,
    LABEL_VALUE,
    MAX_LABELS,
    described,
)
from trimtab.model.crds.schema import Notes, Schema, rule, rules
from trimtab.model.selector import LabelSelector, LabelSelectorRequirement
from trimtab.model.vpa.types import VPAScope, VPAScopeSpec

_VALUE: Schema = {"maxLength": LABEL_LENGTH, "pattern": LABEL_VALUE}

_NOTES = Notes(
    types={
        VPAScope: {"required": ["spec"]},
        LabelSelector: {"x-kubernetes-map-type": "atomic"},
        LabelSelectorRequirement: {
            "required": ["key", "operator"],
            **rules(
                rule(
                    "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
                    "must be specified when `operator` is 'In' or 'NotIn'",
                    at=".values",
                    reason="FieldValueRequired",
                ),
                rule(
                    "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                    at=".values",
                    reason="FieldValueForbidden",
                ),
            ),
        },
    },
    fields={
        (VPAScopeSpec, "podSelector"): described(
            "Labels of the pods that are meant; absent: no restriction."
        ),
        (VPAScopeSpec, "nodeSelector"): described(
            "Labels of the nodes whose pods are meant; absent: no restriction. Both selectors must match."
        ),
        (LabelSelector, "matchLabels"): {
            "maxProperties": MAX_LABELS,
            "additionalProperties": _VALUE,
            **rules(
                rule(
                    f"self.all(key, size(key) <= {LABEL_KEY_LENGTH} && key.matches('{LABEL_KEY}'))",
                    "every key must be a label key such as app.kubernetes.io/name",
                )
            ),
        },
        (LabelSelector, "matchExpressions"): {"maxItems": MAX_LABELS, "x-kubernetes-list-type": "atomic"},
        (LabelSelectorRequirement, "key"): {
            "minLength": 1,
            "maxLength": LABEL_KEY_LENGTH,
            "pattern": LABEL_KEY,
        },
        (LabelSelectorRequirement, "operator"): {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
        (LabelSelectorRequirement, "values"): {
            "maxItems": MAX_LABELS,
            "items": _VALUE,
            "x-kubernetes-list-type": "atomic",
        },
    },
)

VPA_SCOPES = Crd(
    group="autoscaling.k8s.io",
    version="v1",
    kind=VPAScope,
    plural="vpascopes",
    notes=_NOTES,
    has_status_subresource=False,
    annotations={APPROVAL: "unapproved, VPAScope is a proposal (kubernetes/autoscaler#8956)"},
    columns=(
        Column("Pods", ".spec.podSelector.matchLabels"),
        Column("Nodes", ".spec.nodeSelector.matchLabels"),
        AGE,
    ),
)
