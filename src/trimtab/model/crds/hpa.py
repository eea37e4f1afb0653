"""The CRD of autoscaling.trimtab.dev/v2 HorizontalPodAutoscaler.

Unlike autoscaling/v2, it validates the selectors of metrics, since a bad one never works.
"""

from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.crds.definition import AGE, Crd, PrinterColumn
from trimtab.model.crds.schema import (
    LABEL,
    LABEL_LENGTH,
    NAME_LENGTH,
    NOT_NEGATIVE,
    PATH_SEGMENT,
    POSITIVE,
    SELECTOR_FIELDS,
    SELECTOR_TYPES,
    TEXT_LENGTH,
    Notes,
    Schema,
    described,
    enum_of,
    rule,
    rules,
)
from trimtab.model.groups import OWN_GROUP
from trimtab.model.hpa import replica_policies, types
from trimtab.model.hpa.dry_run import MODE_ANNOTATION
from trimtab.model.hpa.metric_fields import (
    DEFAULT_LAST_GOOD_SECONDS,
    MAX_LAST_GOOD_SECONDS,
    MAX_SAMPLE_AGE_SECONDS,
)
from trimtab.model.hpa.metric_kinds import KINDS
from trimtab.model.hpa.validation.limits import MAX_METRICS
from trimtab.model.hpa.validation.spec import MAX_PERIOD_SECONDS, MAX_STABILIZATION_WINDOW_SECONDS
from trimtab.model.plugin_names import LONGEST_NAME, PLUGIN_NAME

MAX_POLICIES = 20

_MODE = ".metadata.annotations." + MODE_ANNOTATION.replace(".", r"\.")
# A class needs no backslash, which CEL would read.
_STRATEGY_NAMES = "|".join((*types.SelectionStrategy, PLUGIN_NAME.replace("\\.", "[.]")))
_QUOTED_STRATEGIES = ", ".join(f'"{strategy}"' for strategy in types.SelectionStrategy)
_STRATEGIES: Schema = {
    "type": "string",
    "maxLength": LONGEST_NAME,
    **rules(
        rule(
            f"self.matches('^({_STRATEGY_NAMES})$')",
            f"supported values: {_QUOTED_STRATEGIES}, or the name of a plug-in's pod filter, as example.com/NotDraining",
        )
    ),
}
_SOURCE_FIELDS: dict[str, Schema] = {
    "name": {"minLength": 1, "maxLength": TEXT_LENGTH},
    "container": {"pattern": LABEL, "minLength": 1, "maxLength": LABEL_LENGTH},
    "activation": described(
        "With minReplicas 0: at or below this number the metric asks for no pod, so it neither wakes the workload nor "
        "keeps it awake. The whole number of an Object or External metric, the average of a Pods metric; absent: 0.",
        NOT_NEGATIVE,
    ),
}
"""Fields of the sources of metrics, beside those of other types."""

_SPEC: dict[str, Schema] = {
    "scaleTargetRef": described(
        "The workload whose replicas are set; it must have a scale subresource.",
        rules(
            rule(
                "self.kind == 'ReplicationController' || (has(self.apiVersion) && self.apiVersion.contains('/'))",
                "apiVersion must specify API group",
                at=".apiVersion",
            )
        ),
    ),
    "minReplicas": described(
        "Lower limit of replicas, 1 if absent. 0 needs an Object or External metric.",
        {"minimum": 0, "default": 1},
    ),
    "maxReplicas": described("Upper limit of replicas.", {"minimum": 1}),
    "metrics": described(
        "What to scale on; the metric that asks for most replicas wins. Absent: 80 % of the requested CPU.",
        {"maxItems": MAX_METRICS, "x-kubernetes-list-type": "atomic"},
    ),
    "behavior": described("How fast to scale in each direction."),
    "selectionStrategy": described(
        "Which pods count: all that match the target's labels (LabelSelector, the default), or of those only the ones "
        "that the target owns, directly or through others (OwnerReference), or those that the pod filter of a plug-in "
        "keeps (its name, as example.com/NotDraining).",
        _STRATEGIES,
    ),
    "replicaPolicies": described(
        "Plug-ins that propose replicas beside the metrics; the largest proposal counts.",
        {
            "maxItems": replica_policies.MAX_POLICIES,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    ),
    "SelectionStrategy": described("The spelling of selectionStrategy in KEP-5625.", _STRATEGIES),
}

_BEHAVIOR: dict[str, Schema] = {
    "stabilizationWindowSeconds": described(
        "How long past recommendations are remembered so that the replica count does not flap.",
        {"minimum": 0, "maximum": MAX_STABILIZATION_WINDOW_SECONDS},
    ),
    "selectPolicy": described(
        "Which policy counts: Max (the default), Min, or Disabled for no scaling in this direction.",
        enum_of(types.ScalingPolicySelect),
    ),
    "policies": described(
        "How much may change within a period.", {"maxItems": MAX_POLICIES, "x-kubernetes-list-type": "atomic"}
    ),
    "tolerance": described(
        "How far the metric may stray from its target, as a fraction, before anything is done; 0.05 is 5 %.",
        NOT_NEGATIVE,
    ),
}


def _source_fields() -> dict[tuple[type, str], Schema]:
    """Return the notes on the source of each type of metric."""
    notes: dict[tuple[type, str], Schema] = {}
    for kind in KINDS.values():
        notes |= {(kind.source_type, name): note for name, note in _SOURCE_FIELDS.items() if kind.has(name)}
        # Which of the numbers must be there cannot be a CEL rule: CEL does not see fields without a type.
        numbers: list[Schema] = [{"required": [name]} for name in kind.target.numbers]
        one: Schema = {"oneOf" if kind.target.both else "anyOf": numbers}
        notes[(kind.source_type, "target")] = numbers[0] if len(numbers) == 1 else one
    return notes


_NOTES = Notes(
    types={
        types.HorizontalPodAutoscaler: {"required": ["spec"]},
        types.HorizontalPodAutoscalerSpec: {
            "required": ["scaleTargetRef", "maxReplicas"],
            **rules(
                rule(
                    "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
                    "must be greater than or equal to `minReplicas`",
                    at=".maxReplicas",
                ),
                rule(
                    "!has(self.minReplicas) || self.minReplicas > 0 || "
                    "(has(self.metrics) && self.metrics.exists(metric, metric.type in ['Object', 'External']))",
                    "must specify at least one Object or External metric to support scaling to zero replicas",
                    at=".metrics",
                    reason="FieldValueForbidden",
                ),
                rule(
                    "!has(self.selectionStrategy) || !has(self.SelectionStrategy) || "
                    "self.selectionStrategy == self.SelectionStrategy",
                    "is given in two spellings with two values",
                    at=".SelectionStrategy",
                ),
            ),
        },
        CrossVersionObjectReference: {"required": ["kind", "name"], "x-kubernetes-map-type": "atomic"},
        types.MetricSpec: {
            "required": ["type"],
            **rules(
                *(
                    rule(
                        f"(self.type == '{kind.type_name}') == has(self.{kind.field})",
                        f"must be set if, and only if, type is {kind.type_name}",
                        at=f".{kind.field}",
                    )
                    for kind in KINDS.values()
                ),
            ),
        },
        types.MetricLoss: {
            "required": ["policy"],
            **rules(
                rule(
                    "!has(self.maxAgeSeconds) || self.policy == 'LastGood'",
                    "may only be set with policy LastGood",
                    at=".maxAgeSeconds",
                    reason="FieldValueForbidden",
                ),
                rule(
                    "(self.policy == 'Replicas') == has(self.replicas)",
                    "must be set if, and only if, policy is Replicas",
                    at=".replicas",
                ),
            ),
        },
        types.MetricTarget: {"required": ["type"]},
        types.MetricIdentifier: {"required": ["name"]},
        **{
            kind.source_type: {
                "required": [
                    name for name in kind.source_type.__struct_encode_fields__ if name != "activation"
                ]
            }
            for kind in KINDS.values()
        },
        types.HPAScalingPolicy: {"required": ["type", "value", "periodSeconds"]},
        types.ReplicaPolicySpec: {"required": ["name"]},
        **SELECTOR_TYPES,
    },
    fields={
        **{(types.HorizontalPodAutoscalerSpec, name): note for name, note in _SPEC.items()},
        **{(types.HPAScalingRules, name): note for name, note in _BEHAVIOR.items()},
        (types.HorizontalPodAutoscalerBehavior, "scaleUp"): described(
            "Rules for growing; absent: the larger of 4 pods and 100 % per 15 s."
        ),
        (types.HorizontalPodAutoscalerBehavior, "scaleDown"): described(
            "Rules for shrinking; absent: 100 % per 15 s after a window of 300 s."
        ),
        (CrossVersionObjectReference, "kind"): PATH_SEGMENT,
        (CrossVersionObjectReference, "name"): PATH_SEGMENT,
        (CrossVersionObjectReference, "apiVersion"): {"maxLength": NAME_LENGTH},
        (types.MetricSpec, "type"): enum_of(types.MetricSourceType),
        (types.MetricSpec, "onLoss"): described(
            "What the metric counts as while it cannot be read; absent: Hold, nothing is lowered."
        ),
        (types.MetricSpec, "maxAgeSeconds"): described(
            "How old a sample may be; an older one is refused. Absent: the operator's --metrics-max-age.",
            {"minimum": 1, "maximum": MAX_SAMPLE_AGE_SECONDS},
        ),
        (types.MetricLoss, "policy"): described(
            "Hold: nothing is lowered. Ignore: the other metrics decide. LastGood: it keeps asking for what it last "
            "asked for, up to maxAgeSeconds. Replicas: it asks for that many.",
            enum_of(types.LossPolicy),
        ),
        (types.MetricLoss, "maxAgeSeconds"): described(
            f"LastGood: for how long; absent: {DEFAULT_LAST_GOOD_SECONDS}. Afterwards the metric holds.",
            {"minimum": 1, "maximum": MAX_LAST_GOOD_SECONDS},
        ),
        (types.MetricLoss, "replicas"): described("Replicas: how many.", {"minimum": 1}),
        (types.MetricTarget, "type"): enum_of(types.MetricTargetType),
        (types.MetricTarget, "value"): described("The metric's total.", POSITIVE),
        (types.MetricTarget, "averageValue"): described("The metric's share of each pod.", POSITIVE),
        (types.MetricTarget, "averageUtilization"): described(
            "Percent of what the pods request.", {"minimum": 1}
        ),
        (types.MetricIdentifier, "name"): PATH_SEGMENT,
        (types.MetricIdentifier, "selector"): described("Which series of the metric are meant; absent: all."),
        **_source_fields(),
        (types.ReplicaPolicySpec, "name"): described(
            "The name of the plug-in with its domain, as example.com/StepPlan.",
            {"maxLength": LONGEST_NAME, "pattern": f"^{PLUGIN_NAME}$"},
        ),
        (types.ReplicaPolicySpec, "parameters"): described(
            f"What the policy is given: an object that it understands, of at most {replica_policies.MAX_PARAMETER_BYTES} bytes."
        ),
        (types.HPAScalingPolicy, "type"): enum_of(types.ScalingPolicyType),
        (types.HPAScalingPolicy, "value"): {"minimum": 1},
        (types.HPAScalingPolicy, "periodSeconds"): {"minimum": 1, "maximum": MAX_PERIOD_SECONDS},
        **SELECTOR_FIELDS,
    },
    status=Notes(
        fields={
            (types.HorizontalPodAutoscalerStatus, "reason"): described(
                "Why the replicas are what they are, in the word of `trimtab explain`."
            ),
            (types.HorizontalPodAutoscalerStatus, "targets"): described(
                "The values of the first metrics beside their targets, as `kubectl get` shows them."
            ),
            (types.HorizontalPodAutoscalerStatus, "memory"): described(
                "What the next replica of Trimtab goes on from: windows, rate limits, the size before zero."
            ),
            (types.HorizontalPodAutoscalerStatus, "conditions"): {
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {"required": ["type", "status"]},
            },
        }
    ),
)

HORIZONTAL_POD_AUTOSCALERS = Crd(
    group=OWN_GROUP,
    version="v2",
    kind=types.HorizontalPodAutoscaler,
    plural="horizontalpodautoscalers",
    notes=_NOTES,
    short_names=("thpa",),
    categories=("all", "trimtab"),
    columns=(
        PrinterColumn("Kind", ".spec.scaleTargetRef.kind"),
        PrinterColumn("Reference", ".spec.scaleTargetRef.name"),
        # A path prints a single value, so the operator writes the text of all metrics.
        PrinterColumn("Targets", ".status.targets"),
        PrinterColumn("MinPods", ".spec.minReplicas", "integer"),
        PrinterColumn("MaxPods", ".spec.maxReplicas", "integer"),
        PrinterColumn("Replicas", ".status.currentReplicas", "integer"),
        PrinterColumn("Desired", ".status.desiredReplicas", "integer"),
        PrinterColumn("Active", ".status.conditions[?(@.type=='ScalingActive')].status"),
        PrinterColumn("Mode", _MODE),
        AGE,
        PrinterColumn("Reason", ".status.reason", priority=1),
        PrinterColumn("Selection", ".spec['selectionStrategy','SelectionStrategy']", priority=1),
        PrinterColumn("Last-Scale", ".status.lastScaleTime", "date", priority=1),
    ),
)
