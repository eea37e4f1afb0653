"""The proposal of each type of metric: what it asks for, or why it cannot be used.

Only the classes here branch on the type. A metric that cannot be used gives a `Failure`, which is a value. `pods` and `totals` have
the arithmetic.
"""

from collections.abc import Iterable
from hashlib import blake2s
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER, finite, int64_of, ratio_of
from trimtab.decide.horizontal.metrics import totals
from trimtab.decide.horizontal.metrics.pods import (
    Context,
    Gaps,
    Misconfigured,
    ProposalOutcome,
    Unmeasured,
    UnusableMetric,
    Usage,
    group_counted,
    replicas_from_ratio,
    requests_of,
)
from trimtab.decide.horizontal.metrics.totals import Total
from trimtab.decide.horizontal.observation.samples import (
    FetchFailure,
    MetricSamples,
    PodSamples,
    Series,
    failure_of,
)
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.hpa import metric_kinds
from trimtab.model.hpa.types import (
    ContainerResourceMetricSource,
    ExternalMetricSource,
    MetricSourceType,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricTargetType,
    MetricValueStatus,
    ObjectMetricSource,
    PodsMetricSource,
    ResourceMetricSource,
)
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError, go_string
from trimtab.model.quantity import Quantity

S = TypeVar("S")
R = TypeVar("R", bound=ResourceMetricSource | ContainerResourceMetricSource)
N = TypeVar("N", bound=ObjectMetricSource | ExternalMetricSource)

_NO_SOURCE = "must populate information for the given metric source"
_NO_RESOURCE_TARGET = "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
_NO_PODS_TARGET = "invalid pods metric source: no average value target was set"
_NO_TARGET = "invalid {} metric source: neither a value target nor an average value target was set"


class PodCounts(Wire):
    """How many pods were in which group."""

    ready: int = 0
    unready: int = 0
    missing: int = 0
    ignored: int = 0


class Proposal(Wire, tag="proposal", tag_field="result"):
    """What one metric asks for."""

    type: str
    name: str
    """The metric as conditions and events call it."""
    replicas: int
    outcome: ProposalOutcome
    ratio: float | None
    """Value by target; None where there is nothing to divide by."""
    value: int
    """Percent for a utilisation, else thousandths."""
    target: int
    status: MetricStatus
    timestamp: float = NEVER
    filled_ratio: float | None = None
    counts: PodCounts | None = None
    rejected_samples: tuple[tuple[str, str], ...] = ()
    """Pods whose samples were rejected, with the rule."""
    pods: int = 0
    """How many pods, or replicas of the target's status, multiply the ratio."""
    total: int | None = None
    """The undivided number behind an average, in thousandths, where the metric is one number."""
    gaps: Gaps | None = None
    activation: int | None = None
    """The number up to which the metric asks for nothing, in thousandths; None where none counts."""
    removed: int = 0
    """Replicas that were removed since the samples began, and that count as measured."""

    @property
    def measured_pods(self) -> int:
        """Return how many pods the ratio was multiplied by."""
        if self.filled_ratio is None or self.gaps is None:
            return self.pods
        return self.gaps.up_pods if self.filled_ratio > 1.0 else self.gaps.down_pods


class Failure(Wire, tag="failure", tag_field="result"):
    """Why one metric cannot be used."""

    type: str
    reason: str
    """Reason of the condition and of the event."""
    message: str
    """What the event says."""
    error: str
    """What the reconcile reports; it names the metric."""
    is_spec_error: bool = False
    is_misconfigured: bool = False
    """Whether the spec of the metric or of the pods is at fault, so that no answer could have helped."""
    is_rejected: bool = False
    """Whether an answer came, and a sample in it was rejected."""
    is_unmeasured: bool = False
    """Whether no pod has a sample."""
    is_warming_up: bool = False
    """Whether no pod has a sample because all of them are too young."""


class Kind(Generic[S]):
    """One type of metric, as `model` describes it."""

    model: metric_kinds.MetricKind[S]

    def propose(self, metric: MetricSpec, samples: MetricSamples, context: Context) -> Proposal | Failure:
        """Return the replicas that a metric asks for, or why it cannot be used."""
        source: S | None = self.model.part(metric)
        try:
            if source is None:
                raise Misconfigured(_NO_SOURCE)
            found, activation = self._propose(source, samples, context), self.model.activation(source)
            if activation is None or not context.may_sleep:
                return found
            return _activated(found, activation.milli_value())
        except UnusableMetric as cause:
            # Upstream begins the error of each type a little differently.
            what = f"{metric.type} metric" if source is None else self._in_errors(source)
            return Failure(
                type=metric.type,
                reason=f"FailedGet{metric.type}Metric",
                message=str(cause),
                error=f"failed to get {what} value: {cause.detail}{cause}",
                is_misconfigured=cause.is_misconfigured,
                is_rejected=cause.is_rejected,
                is_unmeasured=cause.is_unmeasured and context.rules.ours,
            )

    def counts_pods(self, metric: MetricSpec) -> bool:
        """Return whether it matters which pods count: they are averaged, or the ready ones multiply the ratio."""
        return True

    def _propose(self, source: S, samples: MetricSamples, context: Context) -> Proposal:
        raise NotImplementedError

    def _in_errors(self, source: S) -> str:
        """Return the metric as errors of the reconcile call it."""
        raise NotImplementedError

    def _of_pods(
        self,
        name: str,
        usage: Usage,
        source: S,
        shown: MetricValueStatus,
        samples: PodSamples,
        context: Context,
    ) -> Proposal:
        groups, removed = usage.groups, 0
        if context.memory.scale_down:
            removed = context.removed_since(
                [samples.samples[pod.name] for pod in groups.ready], samples.moves
            )
        result = replicas_from_ratio(usage, context, removed)
        return Proposal(
            type=self.model.type_name,
            name=name,
            replicas=result.replicas,
            outcome=result.outcome,
            ratio=finite(usage.ratio),
            value=usage.value,
            target=usage.target,
            status=self.model.status(source, shown),
            timestamp=samples.timestamp,
            filled_ratio=result.filled_ratio,
            counts=PodCounts(
                ready=len(groups.ready),
                unready=len(groups.unready),
                missing=len(groups.missing),
                ignored=len(groups.ignored),
            ),
            rejected_samples=tuple(groups.rejected),
            pods=len(groups.ready),
            gaps=usage.gaps() if groups.unready or groups.missing else None,
            removed=result.removed,
        )


class _OfResource(Kind[R]):
    """A resource that metrics-server measures, as a percentage of requests or as an amount per pod."""

    requested = "resource"

    def _propose(self, source: R, samples: MetricSamples, context: Context) -> Proposal:
        target, resource = source.target, source.name
        if target.average_value is None and target.average_utilization is None:
            raise Misconfigured(_NO_RESOURCE_TARGET)
        try:
            return self._with_target(source, samples, context)
        except UnusableMetric as cause:
            what = "utilization" if target.average_value is None else "usage"
            raise cause.reworded(f"failed to get {resource} {what}: {cause}") from cause

    def _with_target(self, source: R, samples: MetricSamples, context: Context) -> Proposal:
        target = source.target
        resource, container = self.model.measured(source)
        if not isinstance(samples, PodSamples):
            is_empty = isinstance(samples, FetchFailure) and samples.is_empty
            kind = Unmeasured if is_empty else UnusableMetric
            raise kind(f"unable to get metrics for resource {resource}: {failure_of(samples)}")
        groups = group_counted(samples, context, is_cpu=resource == CPU)
        if target.average_value is not None:
            usage = Usage(groups, target.average_value.milli_value())
            shown = MetricValueStatus(average_value=resource_quantity(resource, usage.average))
            return self._of_pods(f"{resource} resource", usage, source, shown, samples, context)
        requests = requests_of(context.pods, resource, container, context.rules)
        usage = Usage(groups, target.average_utilization or 0, requests)
        shown = MetricValueStatus(
            average_utilization=usage.value, average_value=resource_quantity(resource, usage.average)
        )
        name = f"{resource} {self.requested} utilization (percentage of request)"
        return self._of_pods(name, usage, source, shown, samples, context)


class ResourceKind(_OfResource[ResourceMetricSource]):
    """CPU or memory of each pod."""

    model = metric_kinds.KINDS[MetricSourceType.RESOURCE]

    def _in_errors(self, source: ResourceMetricSource) -> str:
        return f"{source.name} resource metric"


class ContainerResourceKind(_OfResource[ContainerResourceMetricSource]):
    """CPU or memory of one container in each pod."""

    model = metric_kinds.KINDS[MetricSourceType.CONTAINER_RESOURCE]
    requested = "container resource"

    def _in_errors(self, source: ContainerResourceMetricSource) -> str:
        return f"{source.container} container metric"


class PodsKind(Kind[PodsMetricSource]):
    """The average of a custom metric over the pods, ready or not."""

    model = metric_kinds.KINDS[MetricSourceType.PODS]

    def _propose(self, source: PodsMetricSource, samples: MetricSamples, context: Context) -> Proposal:
        name, target = source.metric.name, source.target.average_value
        _check_metric_selector(source.metric.selector)
        if target is None:
            raise Misconfigured(_NO_PODS_TARGET)
        if not isinstance(samples, PodSamples):
            raise UnusableMetric(f"unable to get metric {name}: {failure_of(samples)}")
        usage = Usage(group_counted(samples, context, is_cpu=False), target.milli_value())
        shown = MetricValueStatus(average_value=Quantity.from_milli(usage.average))
        return self._of_pods(f"pods metric {name}", usage, source, shown, samples, context)

    def _in_errors(self, source: PodsMetricSource) -> str:
        return "pods metric"


class _OneNumber(Kind[N]):
    """One number for the whole workload."""

    def counts_pods(self, metric: MetricSpec) -> bool:
        source: N | None = self.model.part(metric)
        return source is None or not self._is_average(source.target)

    def _is_average(self, target: MetricTarget) -> bool:
        """Return whether the number is shared by the replicas."""
        raise NotImplementedError

    def _total(self, source: N, samples: MetricSamples, context: Context) -> Total:
        raise NotImplementedError

    def _by_target(self, name: str, source: N, samples: MetricSamples, context: Context) -> Proposal:
        """Propose replicas for the total, or for the share of each replica."""
        target, total = source.target, self._total(source, samples, context)
        if not self._is_average(target):
            assert target.value is not None
            milli, pods, undivided, value = target.value.milli_value(), context.ready_pods, None, total.value
            assert isinstance(samples, Series)
            removed = context.removed_since(samples.samples, samples.moves)
            result = totals.replicas_for_value(value, milli, context, removed)
            ratio = ratio_of(value, milli)
            shown = MetricValueStatus(value=Quantity.from_milli(value))
        else:
            assert target.average_value is not None
            milli, pods = target.average_value.milli_value(), context.status_replicas
            undivided, value = int64_of(total.value), totals.share_of(total.value, context)
            result = totals.replicas_for_average(total.value, milli, context)
            ratio = totals.ratio_of_shares(total.value, milli, context)
            shown = MetricValueStatus(average_value=Quantity.from_milli(value))
        return Proposal(
            type=self.model.type_name,
            name=name,
            replicas=result.replicas,
            outcome=result.outcome,
            ratio=finite(ratio),
            value=int64_of(value),
            target=milli,
            status=self.model.status(source, shown),
            timestamp=total.timestamp,
            pods=pods,
            total=undivided,
            removed=result.removed,
        )


class ObjectKind(_OneNumber[ObjectMetricSource]):
    """A metric that describes one object. The target's type says which of its numbers is in use."""

    model = metric_kinds.KINDS[MetricSourceType.OBJECT]

    def _is_average(self, target: MetricTarget) -> bool:
        return target.type == MetricTargetType.AVERAGE_VALUE and target.average_value is not None

    def _propose(self, source: ObjectMetricSource, samples: MetricSamples, context: Context) -> Proposal:
        name, target, is_average = source.metric.name, source.target, self._is_average(source.target)
        _check_metric_selector(source.metric.selector)
        if not is_average and (target.type != MetricTargetType.VALUE or target.value is None):
            raise Misconfigured(_NO_TARGET.format("object"))
        shown = f"{source.described_object.kind} metric {name}"
        if is_average and not context.rules.ours:
            shown = f"external metric {name}({go_string(source.metric.selector)})"
        try:
            return self._by_target(shown, source, samples, context)
        except UnusableMetric as cause:
            detail = f"failed to get {name} object metric: " if is_average else ""
            raise cause.reworded(str(cause), detail) from cause

    def _total(self, source: ObjectMetricSource, samples: MetricSamples, context: Context) -> Total:
        try:
            return totals.first_of(samples, context)
        except UnusableMetric as cause:
            metric, described = source.metric.name, source.described_object
            if context.rules.minor >= 37:
                text = f"unable to get metric {metric} on {described.kind} {context.namespace}/{described.name}: {cause}"
            else:
                text = f"unable to get metric {metric}: {described.kind} on {context.namespace} {described.name}/{cause}"
            raise cause.reworded(text) from cause

    def _in_errors(self, source: ObjectMetricSource) -> str:
        return "object metric"


class ExternalKind(_OneNumber[ExternalMetricSource]):
    """The sum of series that belong to no object. An average is in use wherever it is set, whatever the target's type says."""

    model = metric_kinds.KINDS[MetricSourceType.EXTERNAL]

    def _is_average(self, target: MetricTarget) -> bool:
        return target.average_value is not None

    def _propose(self, source: ExternalMetricSource, samples: MetricSamples, context: Context) -> Proposal:
        name, is_average = source.metric.name, self._is_average(source.target)
        if not is_average and source.target.value is None:
            raise Misconfigured(_NO_TARGET.format("external"))
        try:
            _check_metric_selector(source.metric.selector)
            shown = f"external metric {name}({go_string(source.metric.selector)})"
            return self._by_target(shown, source, samples, context)
        except UnusableMetric as cause:
            metric = f"{name} external metric" if is_average else f"external metric {name}"
            raise cause.reworded(str(cause), f"failed to get {metric}: ") from cause

    def _total(self, source: ExternalMetricSource, samples: MetricSamples, context: Context) -> Total:
        try:
            return totals.sum_of(samples, context, is_average=self._is_average(source.target))
        except UnusableMetric as cause:
            metric = f"{context.namespace}/{source.metric.name}/{go_string(source.metric.selector)}"
            raise cause.reworded(f"unable to get external metric {metric}: {cause}") from cause

    def _in_errors(self, source: ExternalMetricSource) -> str:
        return f"{source.metric.name} external metric"


KINDS: dict[str, Kind[Any]] = {
    kind.model.type_name: kind
    for kind in (ObjectKind(), ExternalKind(), PodsKind(), ResourceKind(), ContainerResourceKind())
}


def propose_replicas(metric: MetricSpec, samples: MetricSamples, context: Context) -> Proposal | Failure:
    """Return the replicas that one metric asks for, or why it cannot be used."""
    kind = KINDS.get(metric.type)
    if kind is not None:
        return kind.propose(metric, samples, context)
    message = f'unknown metric source type "{metric.type}"'
    return Failure(
        type=metric.type,
        reason="InvalidMetricSourceType",
        message=message,
        error=message,
        is_spec_error=True,
    )


def counts_pods(metrics: Iterable[MetricSpec]) -> bool:
    """Return whether it matters to one of these metrics which pods count."""
    return any(metric.type in KINDS and KINDS[metric.type].counts_pods(metric) for metric in metrics)


def _activated(proposal: Proposal, activation: int) -> Proposal:
    """Return the proposal of a metric that asks for nothing up to a level."""
    proposal = msgspec.structs.replace(proposal, activation=activation)
    total = proposal.value if proposal.total is None else proposal.total
    if total > activation or not proposal.replicas:
        return proposal
    return msgspec.structs.replace(proposal, replicas=0, outcome=ProposalOutcome.BELOW_ACTIVATION)


def metric_key(spec: MetricSpec) -> str:
    """Return the key under which the memory stores values of a metric, for one target."""
    asked = msgspec.structs.replace(spec, on_loss=None, max_age_seconds=None)
    return blake2s(wire.encode(asked), digest_size=6).hexdigest()


def resource_quantity(resource: str, milli: int) -> Quantity:
    """Return an amount of a resource as metrics-server writes it: memory in binary units."""
    return Quantity.from_milli(milli, "BinarySI" if resource == MEMORY else "DecimalSI")


def _check_metric_selector(selector: LabelSelector | None) -> None:
    # Admission does not validate metric selectors, so a broken selector first fails here.
    if selector is None:
        return
    try:
        Selector.from_label_selector(selector)
    except SelectorError as error:
        raise Misconfigured(str(error)) from error
