"""What each reason of an event or condition means, and what to do about it, for the reference page.

The code says which reasons there are, a test compares; the words are here, because they are for readers only.
"""

from typing import NamedTuple


class Reason(NamedTuple):
    """One reason: where it is seen, what it says, what to do."""

    where: str
    meaning: str
    action: str = ""


_ABLE = "condition AbleToScale"
_ACTIVE = "condition ScalingActive"
_LIMITED = "condition ScalingLimited"
_WARNING = "event, Warning"
_NORMAL = "event, Normal"

HORIZONTAL = {
    "SucceededGetScale": Reason(_ABLE, "The target's scale was read."),
    "FailedGetScale": Reason(
        f"{_ABLE}, {_WARNING}",
        "The target is missing or has no scale.",
        "Check scaleTargetRef; for a kind of your own see `scalable` in install.md.",
    ),
    "ReadyForNewScale": Reason(_ABLE, "Nothing is in the way; the size is right."),
    "ScaleDownStabilized": Reason(
        _ABLE,
        "A higher recommendation is still inside the scale-down window.",
        "Wait, or shorten behavior.scaleDown.stabilizationWindowSeconds.",
    ),
    "ScaleUpStabilized": Reason(_ABLE, "A lower recommendation is still inside the scale-up window."),
    "SucceededRescale": Reason(_ABLE, "The scale was just written."),
    "FailedUpdateScale": Reason(
        _ABLE,
        "The scale could not be written.",
        "The message is the API server's; usually rights or a webhook.",
    ),
    "DryRun": Reason(_ABLE, "A dry run: this would have been written."),
    "UnknownAnnotation": Reason(
        _ABLE,
        "An annotation of ours has a value that is not known; nothing is scaled.",
        "Correct or remove it; `trimtab validate` names it, too.",
    ),
    "ValidMetricFound": Reason(_ACTIVE, "At least one metric could be read."),
    "ScalingDisabled": Reason(
        _ACTIVE,
        "Somebody set the target to zero; a zero that Trimtab did not make is left alone.",
        "Scale the target to one, and it goes on.",
    ),
    "InvalidSelector": Reason(f"{_ACTIVE}, {_WARNING}", "The target's selector cannot be read."),
    "SelectorRequired": Reason(
        f"{_ACTIVE}, {_WARNING}", "The target's scale has no selector, so its pods are unknown."
    ),
    "AmbiguousSelector": Reason(
        f"{_ACTIVE}, {_WARNING}",
        "Another HPA selects the same pods; both hold.",
        "Give them labels of their own, or use selectionStrategy: OwnerReference.",
    ),
    "InvalidMetricSourceType": Reason(f"{_ACTIVE}, {_WARNING}", "A metric's type is not known."),
    "FailedGetResourceMetric": Reason(
        f"{_ACTIVE}, {_WARNING}",
        "CPU or memory cannot be read.",
        "kubectl top pods must work; every container needs a request.",
    ),
    "FailedGetContainerResourceMetric": Reason(
        f"{_ACTIVE}, {_WARNING}", "CPU or memory of one container cannot be read."
    ),
    "FailedGetPodsMetric": Reason(f"{_ACTIVE}, {_WARNING}", "A metric of the pods cannot be read."),
    "FailedGetObjectMetric": Reason(f"{_ACTIVE}, {_WARNING}", "A metric of an object cannot be read."),
    "FailedGetExternalMetric": Reason(f"{_ACTIVE}, {_WARNING}", "An external metric cannot be read."),
    "FailedComputeMetricsReplicas": Reason(
        _WARNING, "No metric could be used; the message has the first cause."
    ),
    "DesiredWithinRange": Reason(_LIMITED, "The wanted size is within all limits."),
    "TooFewReplicas": Reason(_LIMITED, "The wanted size is below minReplicas."),
    "TooManyReplicas": Reason(
        _LIMITED, "The wanted size is above maxReplicas.", "Raise maxReplicas if the load is real."
    ),
    "ScaleUpLimit": Reason(_LIMITED, "A scale-up policy, or the default of twice the size, limits the step."),
    "ScaleDownLimit": Reason(_LIMITED, "A scale-down policy limits the step."),
    "ScaledToZero": Reason("condition ScaledToZero", "Trimtab brought it to zero and will wake it."),
    "NotScaledToZero": Reason("condition ScaledToZero", "It is not at zero by Trimtab's hand."),
    "SuccessfulRescale": Reason(_NORMAL, "The size was changed; the message says to what and why."),
    "FailedRescale": Reason(_WARNING, "The size could not be changed."),
    "FailedUpdateStatus": Reason(_WARNING, "The status could not be written."),
    "StrategyChanged": Reason(_NORMAL, "selectionStrategy is another than before."),
    "SelectionStrategyActive": Reason(_NORMAL, "The selection strategy chooses the pods from now on."),
    "ReplicasChangedElsewhere": Reason(
        _NORMAL, "Somebody else changed the replicas; the decision starts from theirs."
    ),
}

_BESIDE = "condition BesideNativeHPA"
HORIZONTAL |= {
    "BesideNativeHPA": Reason(
        f"{_ACTIVE}, {_WARNING}",
        "A native HPA scales the same target, which Trimtab does not serve, so this HPA does not act.",
        "Remove one of the two; see move-from-native-hpa.md or move-from-keda.md.",
    ),
    "NativeHPA": Reason(
        _BESIDE, "The other one is served by kube-controller-manager.", "Remove one of the two."
    ),
    "ScaledObject": Reason(
        _BESIDE, "KEDA made the other one; the message names its ScaledObject.", "Remove one of the two."
    ),
    "NativeHPAsUnseen": Reason(
        _WARNING,
        "Native HPAs may not be listed, so one on the same target would not be seen. The HPA acts.",
        "Let the operator list horizontalpodautoscalers.autoscaling.",
    ),
    "NotListed": Reason("condition NativeHPAsUnseen", "The message has the API server's answer."),
}

_LOST = "condition MetricLost"
_MEND = "Make the metric readable; the event FailedGet…Metric beside it has the cause."

HORIZONTAL |= {
    "MetricLost": Reason(
        _WARNING, "A metric with a loss policy cannot be read; the message says what counts instead.", _MEND
    ),
    "MetricFound": Reason(_NORMAL, "Every metric with a loss policy can be read again."),
    "MetricIgnored": Reason(_LOST, "The lost metric is left out (onLoss Ignore); the others decide.", _MEND),
    "LastGoodValue": Reason(
        _LOST, "The lost metric keeps asking for what it last asked for (onLoss LastGood).", _MEND
    ),
    "LastGoodValueTooOld": Reason(
        _LOST, "That is too old now, or was never known; nothing is lowered.", _MEND
    ),
    "FallBackReplicas": Reason(_LOST, "The lost metric asks for a fixed size (onLoss Replicas).", _MEND),
    "EveryMetricRead": Reason(_LOST, "No metric with a loss policy is lost."),
    "InvalidLossPolicy": Reason(
        _WARNING,
        "The annotation autoscaling.trimtab.dev/on-loss cannot be used, so a lost metric holds.",
        "`trimtab validate` on the manifest says what is wrong with it.",
    ),
    "InvalidMaxAge": Reason(
        _WARNING,
        "The annotation autoscaling.trimtab.dev/max-age-seconds cannot be used, so the operator's limits hold.",
        "`trimtab validate` on the manifest says what is wrong with it.",
    ),
}

HORIZONTAL["PodSelectionFallback"] = Reason(
    _WARNING,
    "An owner could not be read or a pod filter failed, so all matching pods are counted and replicas are not lowered.",
    "The message names the owner or the plug-in; for owners usually a right is missing, see `scalable` in install.md.",
)

HORIZONTAL["OwnersUnreadable"] = Reason(
    "condition PodSelectionFallback",
    "All matching pods are counted instead of those that the target owns, because an owner cannot be read. It goes away "
    "by itself once the owner can be read.",
    "The message names the owner and, where one is missing, the right; see `scalable` in install.md.",
)

_REPAIR = "The message names the plug-in and what is wrong; see plugins.md."
_PLUGIN_CONDITIONS = "condition PodSelectionFallback or PluginFailed"
HORIZONTAL |= {
    "PluginFailed": Reason(
        _WARNING, "A replica policy gave no answer, so replicas are not lowered.", _REPAIR
    ),
    "PluginRaised": Reason(_PLUGIN_CONDITIONS, "The plug-in raised an exception.", _REPAIR),
    "PluginWrongAnswer": Reason(
        _PLUGIN_CONDITIONS, "The plug-in returned what its protocol does not allow.", _REPAIR
    ),
    "PluginTooSlow": Reason(_PLUGIN_CONDITIONS, "The plug-in took longer than its budget.", _REPAIR),
    "PluginPaused": Reason(
        _PLUGIN_CONDITIONS, "The plug-in failed 3 times in a row and is not called for 5 minutes.", _REPAIR
    ),
    "PluginNotLoaded": Reason(
        _PLUGIN_CONDITIONS,
        "The operator has no plug-in of that name.",
        "Install its package and name it in --plugins.",
    ),
    "PluginWrongKind": Reason(
        _PLUGIN_CONDITIONS,
        "The object names a plug-in of another kind, such as an estimator among its replica policies.",
        "The message says which kind it is and where that kind is named.",
    ),
    "PluginDeclined": Reason(_PLUGIN_CONDITIONS, "The plug-in says that it cannot answer now.", _REPAIR),
    "NodesUnreadable": Reason(
        "condition PodSelectionFallback",
        "The pod filter needs nodes, and the operator cannot list them.",
        "Set horizontal.watchNodes in the chart.",
    ),
    "MisspeltAnnotation": Reason(
        f"{_WARNING}; condition FieldsIgnored",
        "An annotation looks like one of Trimtab's and has no effect.",
        "The message names the annotation and the one that was probably meant.",
    ),
    "MisplacedAnnotation": Reason(
        f"{_WARNING}; condition FieldsIgnored",
        "An annotation that only native HPAs need is on an HPA of Trimtab's own kind, and has no effect.",
        "The message names the field of the spec that counts instead.",
    ),
    "InvalidReplicaPolicies": Reason(
        "condition PluginFailed",
        "The annotation autoscaling.trimtab.dev/replica-policies cannot be read, so replicas are not lowered.",
        "`trimtab validate` on the manifest says what is wrong with it.",
    ),
}

HORIZONTAL["SpecUnreadable"] = Reason(
    "condition ScalingActive",
    "The object has a value that the operator cannot read, such as a quantity with thousands of digits.",
    "The message names the field; correct it.",
)

HORIZONTAL["WarmingUp"] = Reason(
    "condition ScalingActive",
    "All pods started less than 120 s ago and none has a sample yet. It goes away by itself.",
    "Wait for the first samples. CPU takes two periods of metrics-server, about 30 s.",
)

HORIZONTAL["CachesStale"] = Reason(
    _WARNING,
    "The operator could not follow a kind for more than 60 s, so replicas are not lowered. Scaling up goes on.",
    "The message names the kind and the server's answer; usually a right is missing.",
)

HORIZONTAL["CacheTooOld"] = Reason(
    "condition CachesStale",
    "The operator could not follow this HPA's kind, its pods or its target for more than 60 s, so replicas are not lowered. "
    "It goes away by itself.",
    "The message names the kind and the server's answer; see `/readyz` of the operator.",
)

HORIZONTAL["FeatureGateDisabled"] = Reason(
    "condition FieldsIgnored",
    "A field of the spec has no effect, because the operator's feature gate for it is off; the message names both.",
    "Turn the gate on with --feature-gates, or remove the field.",
)
HORIZONTAL["SelectorOverlap"] = Reason(
    "condition SelectorMatchesExtraPods",
    "The target's selector matches more active pods than the target has, and the usage of all of them is averaged. Advice "
    "only; it goes away by itself.",
    "Give the other pods labels of their own, or set selectionStrategy to OwnerReference.",
)

_UNSUPPORTED = "condition ConfigUnsupported"

VERTICAL = {
    "NoPodsMatched": Reason(
        "conditions NoPodsMatched, RecommendationProvided", "No pod of the target is there."
    ),
    "TargetUnsupported": Reason(
        _UNSUPPORTED,
        "The target is missing, or is itself controlled by another.",
        "The message names what to target.",
    ),
    "ScopeNotFound": Reason(_UNSUPPORTED, "vpaScope names a VPAScope that is not in the namespace."),
    "ScopeInvalid": Reason(_UNSUPPORTED, "The VPAScope's selectors cannot be used."),
    "ScopeDisabled": Reason(_UNSUPPORTED, "vpaScope is set, but the gate VPASelectorRefinement is off."),
    "NamespaceExcluded": Reason(
        _UNSUPPORTED,
        "The VPA recommends only: Trimtab changes no pods in its own namespace and in kube-system.",
        "For kube-system set --include-kube-system; else set updateMode Off.",
    ),
    "TooManyRecommenders": Reason(_UNSUPPORTED, "More than one recommender is named; one is allowed."),
    "VPAScopeConflict": Reason(
        _WARNING, "Two VPAs claim one pod; the message says which won.", "Make the scopes disjoint."
    ),
    "CheckpointCollision": Reason(_WARNING, "Two VPAs want a checkpoint of one name.", "Rename one of them."),
    "HistoryUnavailable": Reason(
        _WARNING,
        "Prometheus gave no history at start; checkpoints are used instead.",
        "Is --prometheus-address right?",
    ),
    "EvictionFruitless": Reason(
        _WARNING,
        "Evicted pods came back unchanged; evictions pause.",
        "Is another webhook undoing the change?",
    ),
    "ComputedFor": Reason(
        "condition ComputedFor",
        "What the amounts were learnt for (target and scope) and computed for (beside which other VPAs), since the first sample.",
    ),
    "EstimatorFailed": Reason(
        "condition EstimatorFailed",
        "The estimator that spec.recommenders names gave no usable answer; the last recommendation stays.",
        "The message says what the plug-in did; its traceback is in the log of the recommender.",
    ),
    "NoNodeFits": Reason(
        "condition NoNodeFits; " + _WARNING,
        "No node could hold a pod of the recommended size, or has room for the replacement of a pod, which stays.",
        "The message names the largest size that would fit; see --cap-to-largest-node and --node-fit.",
    ),
    "ReplacementRefused": Reason(
        "condition ReplacementRefused; " + _WARNING,
        "Pods stay as they are, because the API server would not admit their replacements.",
        "The message names the policy, quota or LimitRange. The condition goes when a replacement is admitted.",
    ),
    "ReplacementUnchanged": Reason(
        _WARNING,
        "A pod stays, because its replacement would have the size that it has.",
        "Does the webhook answer for this namespace, or does another one undo the change?",
    ),
    "FreeRoomUnknown": Reason(
        _WARNING,
        "A pod stays, because its replacement requests more and the pods of other namespaces are not watched.",
        "Set --node-fit=allocatable if there is room.",
    ),
    "EvictedPod": Reason(_NORMAL, "A pod of the VPA was evicted to get its new size."),
    "EvictedByVPA": Reason(_NORMAL, "The same, on the pod."),
    "InPlaceResizeRequested": Reason(_NORMAL, "A resize of the pod was requested, or taken back."),
    "InPlaceResizeDeferred": Reason(
        _NORMAL, "The node has no room for the resize now; the message is the kubelet's."
    ),
    "InPlaceResizeRefused": Reason(
        _NORMAL,
        "The kubelet cannot carry out the resize; the message is its own.",
        "A memory limit that is in use is lowered later, without an eviction.",
    ),
    "InPlaceResizedByVPA": Reason(_NORMAL, "The pod is Ready at its new size."),
    "InPlaceResizeSkipped": Reason(_NORMAL, "The new size does not fit on the pod's node."),
    "RoleNotAssigned": Reason(
        _WARNING,
        "The annotation that binds a role to a Lease cannot be used, or the holder of the Lease is no pod.",
    ),
}
