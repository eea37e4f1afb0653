"""The CRDs of VerticalPodAutoscaler, its checkpoints and VPAScope."""

from trimtab.model.core.meta import Condition, CrossVersionObjectReference
from trimtab.model.crds.definition import AGE, Crd, PrinterColumn
from trimtab.model.crds.schema import (
    FRACTION,
    NAME_LENGTH,
    NO_SIGN,
    NOT_NEGATIVE,
    SELECTOR_FIELDS,
    SELECTOR_TYPES,
    Notes,
    Schema,
    described,
    enum_of,
    rule,
    rules,
)
from trimtab.model.groups import OWN_GROUP, VPA_VERSION
from trimtab.model.vpa import types
from trimtab.model.vpa.policy_validation import CONTROLLED_RESOURCES, STARTUP_BOOST_TYPES
from trimtab.model.vpa.validation import MAX_NAME_LENGTH, MAX_RECOMMENDERS

MAX_CONTAINERS = 100
MAX_RESOURCES = 8

_AT_LEAST_ONE: Schema = {"minimum": 1}
_ENDLESS = "matches('[eE][+-]?[0-9]{3}')"
"""Matches text that an API server would compute with for a minute. Its pattern is invalid, but rules still run."""
_BYTES = rules(
    rule(
        f"!string(self).{_ENDLESS} && isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))",
        "must be greater than or equal to 0",
    )
)

_AMOUNTS: Schema = {
    "maxProperties": MAX_RESOURCES,
    "additionalProperties": {"pattern": NO_SIGN, "minimum": 0},
}

_POLICY: dict[str, Schema] = {
    "containerName": described(
        "The container, or * for all that are not named.", {"minLength": 1, "maxLength": NAME_LENGTH}
    ),
    "mode": described("Whether this container is scaled at all.", enum_of(types.ContainerScalingMode)),
    "minAllowed": described("Never recommend less.", _AMOUNTS),
    "maxAllowed": described("Never recommend more.", _AMOUNTS),
    "controlledResources": described(
        f"What is recommended: {' and '.join(CONTROLLED_RESOURCES)} if absent.", {"maxItems": MAX_RESOURCES}
    ),
    "controlledValues": described(
        "What is set: requests, with limits in proportion (the default), or requests alone.",
        enum_of(types.ContainerControlledValues),
    ),
    "oomBumpUpRatio": described(
        "By how much memory grows after an out-of-memory kill.",
        rules(
            rule(
                f"!string(self).{_ENDLESS} && isQuantity(string(self)) && "
                "!quantity(string(self)).isLessThan(quantity('1'))",
                "must be greater than or equal to 1.0",
            )
        ),
    ),
    "oomMinBumpUp": described("By how many bytes memory grows at least after an out-of-memory kill.", _BYTES),
    "memoryAggregationIntervalSeconds": described("How long one memory peak is looked for.", _AT_LEAST_ONE),
    "memoryAggregationIntervalCount": described("How many memory peaks are remembered.", _AT_LEAST_ONE),
    "targetPercentile": described("Fraction of samples that the target covers; 0.9 if absent.", FRACTION),
    "lowerBoundPercentile": described(
        "Fraction of samples that the lower bound covers; 0.5 if absent.", FRACTION
    ),
    "upperBoundPercentile": described(
        "Fraction of samples that the upper bound covers; 0.95 if absent.", FRACTION
    ),
    "safetyMarginFraction": described(
        "What is added to every estimate, as a fraction; 0.15 if absent.", NOT_NEGATIVE
    ),
}

_SPEC: dict[str, Schema] = {
    "targetRef": described(
        "The topmost controller of the pods.",
        {"required": ["kind", "name"], "x-kubernetes-map-type": "atomic"},
    ),
    "updatePolicy": described("How recommendations reach the pods; absent: Recreate."),
    "resourcePolicy": described("Bounds and settings per container."),
    "recommenders": described("The recommender in charge; absent: default.", {"maxItems": MAX_RECOMMENDERS}),
    "vpaScope": described(
        "Limits this VPA to the pods that a VPAScope in this namespace selects: a role, a hot shard, a class of nodes."
    ),
}

_NOTES = Notes(
    types={
        types.VerticalPodAutoscaler: {"required": ["spec"]},
        types.VerticalPodAutoscalerSpec: {"required": ["targetRef"]},
        types.VPAScopeReference: {"required": ["name"]},
        types.RecommenderSelector: {"required": ["name"]},
        types.PodUpdatePolicy: {"required": ["updateMode"]},
        types.EvictionRequirement: {"required": ["resources", "changeRequirement"]},
        types.GenericStartupBoost: {
            "required": ["type"],
            **rules(
                rule(
                    "(self.type == 'Factor') == has(self.factor)",
                    "must be set if, and only if, type is Factor",
                    at=".factor",
                ),
                rule(
                    "(self.type == 'Quantity') == has(self.quantity)",
                    "must be set if, and only if, type is Quantity",
                    at=".quantity",
                ),
            ),
        },
        types.ContainerResourcePolicy: {
            "required": ["containerName"],
            **rules(
                rule(
                    "!has(self.minAllowed) || !has(self.maxAllowed) || self.minAllowed.all(name, "
                    f"!(name in self.maxAllowed) || string(self.minAllowed[name]).{_ENDLESS} || "
                    f"string(self.maxAllowed[name]).{_ENDLESS} || !quantity(string(self.minAllowed[name]))"
                    ".isGreaterThan(quantity(string(self.maxAllowed[name]))))",
                    "must not be lower than minAllowed",
                    at=".maxAllowed",
                ),
                rule(
                    "!(has(self.mode) && self.mode == 'Off' && has(self.controlledValues) && "
                    "self.controlledValues == 'RequestsAndLimits')",
                    "controlledValues shouldn't be specified if container scaling mode is off",
                    at=".controlledValues",
                    reason="FieldValueForbidden",
                ),
            ),
        },
    },
    fields={
        **{(types.VerticalPodAutoscalerSpec, name): note for name, note in _SPEC.items()},
        **{(types.ContainerResourcePolicy, name): note for name, note in _POLICY.items()},
        (types.VPAScopeReference, "name"): {"minLength": 1, "maxLength": NAME_LENGTH},
        (CrossVersionObjectReference, "kind"): {"minLength": 1, "maxLength": MAX_NAME_LENGTH},
        (CrossVersionObjectReference, "name"): {"minLength": 1, "maxLength": MAX_NAME_LENGTH},
        (types.PodResourcePolicy, "containerPolicies"): {"maxItems": MAX_CONTAINERS},
        (types.PodUpdatePolicy, "updateMode"): described(
            "Off recommends only; Initial sizes new pods; Recreate evicts; InPlace resizes; InPlaceOrRecreate resizes and "
            "evicts where that fails. Auto is deprecated.",
            enum_of(types.UpdateMode),
        ),
        (types.PodUpdatePolicy, "minReplicas"): described(
            "Live pods below which nothing is evicted.", _AT_LEAST_ONE
        ),
        (types.PodUpdatePolicy, "evictAfterOOMSeconds"): described(
            "A container killed for memory within this time of its start is resized at once.", _AT_LEAST_ONE
        ),
        (types.EvictionRequirement, "changeRequirement"): enum_of(types.EvictionChangeRequirement),
        (types.GenericStartupBoost, "type"): {"enum": list(STARTUP_BOOST_TYPES)},
    },
    status=Notes(
        types={
            types.RecommendedContainerResources: {"required": ["target"]},
            Condition: {
                "required": ["type", "status"],
                "properties": {"observedGeneration": {"type": "integer", "format": "int64", "minimum": 0}},
            },
        },
        fields={
            (types.VerticalPodAutoscalerStatus, "observedGeneration"): {"minimum": 0},
        },
    ),
)

VERTICAL_POD_AUTOSCALERS = Crd(
    group=OWN_GROUP,
    version=VPA_VERSION,
    kind=types.VerticalPodAutoscaler,
    plural="verticalpodautoscalers",
    notes=_NOTES,
    short_names=("tvpa",),
    categories=("all", "trimtab"),
    columns=(
        PrinterColumn("Mode", ".spec.updatePolicy.updateMode"),
        PrinterColumn("CPU", ".status.recommendation.containerRecommendations[0].target.cpu"),
        PrinterColumn("Mem", ".status.recommendation.containerRecommendations[0].target.memory"),
        PrinterColumn("Provided", ".status.conditions[?(@.type=='RecommendationProvided')].status"),
        AGE,
        PrinterColumn("Scope", ".spec.vpaScope.name", priority=1),
        PrinterColumn("MinReplicas", ".spec.updatePolicy.minReplicas", "integer", priority=1),
        PrinterColumn("OOMSeconds", ".spec.updatePolicy.evictAfterOOMSeconds", "integer", priority=1),
    ),
)

CHECKPOINTS = Crd(
    group=OWN_GROUP,
    version=VPA_VERSION,
    kind=types.VerticalPodAutoscalerCheckpoint,
    plural="verticalpodautoscalercheckpoints",
    # Weights are unsigned 32-bit numbers, more than int32 holds.
    notes=Notes(
        status=Notes(
            fields={
                (types.HistogramCheckpoint, "bucketWeights"): {
                    "additionalProperties": {
                        "type": "integer",
                        "format": "int64",
                        "minimum": 0,
                        "maximum": None,
                    }
                }
            }
        )
    ),
    short_names=("tvpacheckpoint",),
    # Upstream writes the status with the object, so it must not be a subresource here either.
    has_status_subresource=False,
    columns=(
        PrinterColumn("VPA", ".spec.vpaObjectName"),
        PrinterColumn("Container", ".spec.containerName"),
        PrinterColumn("Samples", ".status.totalSamplesCount", "integer"),
        PrinterColumn("Updated", ".status.lastUpdateTime", "date"),
        AGE,
    ),
)


_SCOPE_NOTES = Notes(
    types={
        types.VPAScope: {"required": ["spec"]},
        **SELECTOR_TYPES,
    },
    fields={
        (types.VPAScopeSpec, "podSelector"): described(
            "Labels of the pods that are meant; absent: no restriction."
        ),
        (types.VPAScopeSpec, "nodeSelector"): described(
            "Labels of the nodes whose pods are meant; absent: no restriction. Both selectors must match."
        ),
        **SELECTOR_FIELDS,
    },
)

VPA_SCOPES = Crd(
    group=OWN_GROUP,
    version=VPA_VERSION,
    kind=types.VPAScope,
    plural="vpascopes",
    notes=_SCOPE_NOTES,
    has_status_subresource=False,
    columns=(
        PrinterColumn("Pods", ".spec.podSelector.matchLabels"),
        PrinterColumn("Nodes", ".spec.nodeSelector.matchLabels"),
        AGE,
    ),
)
