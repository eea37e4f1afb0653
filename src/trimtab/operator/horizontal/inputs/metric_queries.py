"""What a round has to ask for each autoscaler, kept as long as its object and its target stay the same."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster import errors
from trimtab.cluster.discovery import Discovery
from trimtab.decide.horizontal import FetchFailure, MetricSamples, PodSnapshot
from trimtab.decide.horizontal.observation.samples import (
    Asked,
    read_external_metric,
    read_object_metric,
    read_pods_metric,
)
from trimtab.metrics.queries import ExternalMetric, MetricsError, ObjectMetric, PodsMetric, PodUsage, Query
from trimtab.metrics.reader import MetricsReader
from trimtab.model.core.meta import Condition
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    MetricSourceType,
    MetricSpec,
    ObjectMetricSource,
)
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError
from trimtab.operator.horizontal.inputs.pod_usage import (
    ALL_NAMESPACES,
    ClusterUsage,
    ListAllPolicy,
    NamespaceUsage,
    namespace_usage,
)
from trimtab.operator.horizontal.inputs.targets import ResolvedTarget

Wanted = frozenset[Query]

_ONLY_USAGE: Wanted = frozenset({ALL_NAMESPACES})


@dataclass(frozen=True, slots=True)
class MetricQueries:
    """The answers that one decision waits for."""

    spec: HorizontalPodAutoscalerSpec
    conditions: tuple[Condition, ...]
    aim: ResolvedTarget
    wanted: Wanted
    """The questions, with the usage of the pods of its namespace."""
    wanted_whole: Wanted
    """The same, with the usage of all pods instead."""
    usage: PodUsage | None
    """The question for the usage of the pods of its namespace; None if it is not wanted."""

    def is_for(self, hpa: HorizontalPodAutoscaler, aim: ResolvedTarget) -> bool:
        """Return whether it would be made again just so: no more of an object than this goes into it."""
        return self.aim is aim and self.spec is hpa.spec and self.conditions is hpa.status.conditions

    @property
    def is_only_usage(self) -> bool:
        """Return whether nothing but the usage of pods is asked for."""
        return self.wanted_whole is _ONLY_USAGE


def queries_for_hpa(
    hpa: HorizontalPodAutoscaler, aim: ResolvedTarget, questions: Iterable[Query | FetchFailure]
) -> MetricQueries:
    """Return the plan for an object and its target."""
    wanted = frozenset(one for one in questions if not isinstance(one, FetchFailure))
    usage = next((one for one in wanted if isinstance(one, PodUsage)), None)
    whole = wanted
    if usage is not None:
        # Nearly all plans are this one set; sharing it makes them quick to compare.
        whole = _ONLY_USAGE if len(wanted) == 1 else wanted - {usage} | _ONLY_USAGE
    return MetricQueries(hpa.spec, hpa.status.conditions, aim, wanted, whole, usage)


def namespaces_of(plans: Iterable[MetricQueries]) -> set[str]:
    """Return the namespaces whose pods' usage is wanted."""
    return {plan.usage.namespace for plan in plans if plan.usage is not None and plan.usage.namespace}


_FAILURES = {
    PodUsage: "unable to fetch metrics from resource metrics API: ",
    ObjectMetric: "unable to fetch metrics from custom metrics API: ",
    PodsMetric: "unable to fetch metrics from custom metrics API: ",
    ExternalMetric: "unable to fetch metrics from external metrics API: ",
}


Answer = ClusterUsage | NamespaceUsage | MetricSamples

_NOT_SET = FetchFailure(message="the metric source is not set")


class MetricFetcher:
    """Turns metric specs into questions, and questions into answers.

    A strict one refuses answers about something else than was asked; upstream believes them.
    """

    def __init__(
        self, reader: MetricsReader, discovery: Discovery, whole: ListAllPolicy, *, is_strict: bool
    ) -> None:
        self.whole = whole
        self._reader = reader
        self._discovery = discovery
        self._is_strict = is_strict

    async def of_metric(self, spec: MetricSpec, namespace: str, pod_selector: str) -> Query | FetchFailure:
        """Return the question that a metric spec asks."""
        known = query_for(spec, namespace, pod_selector)
        if known is not None or spec.object is None:
            return known or _NOT_SET
        try:
            return await self._of_object(spec.object, namespace)
        except SelectorError as error:
            return FetchFailure(message=str(error))

    async def _of_object(self, source: ObjectMetricSource, namespace: str) -> Query | FetchFailure:
        described = source.described_object
        selector = _text(source.metric.selector)
        try:
            served = await self._discovery.find_kind(described.api_version or "v1", described.kind)
        except errors.ClusterError as error:
            return FetchFailure(message=str(error))
        resource = f"{served.plural}.{served.group}" if served.group else served.plural
        return ObjectMetric(namespace, resource, described.name, source.metric.name, selector)

    async def ask(self, query: Query) -> Answer:
        """Ask one question; a source that does not answer is a failed reading, never an exception."""
        try:
            if isinstance(query, PodUsage):
                usage = await self._reader.pod_usage(query)
                return ClusterUsage(usage) if query == ALL_NAMESPACES else namespace_usage(usage)
            asked = _asked(query) if self._is_strict else None
            if isinstance(query, ExternalMetric):
                return read_external_metric(await self._reader.external(query), asked)
            answer = await self._reader.custom(query)
            read = read_pods_metric if isinstance(query, PodsMetric) else read_object_metric
            return read(answer, asked)
        except (MetricsError, ValueError, OverflowError) as error:
            is_forbidden = isinstance(error.__cause__, errors.Forbidden)
            return FetchFailure(message=f"{_FAILURES[type(query)]}{error}", is_forbidden=is_forbidden)


def query_for(spec: MetricSpec, namespace: str, pod_selector: str) -> Query | FetchFailure | None:
    """Return the question of a metric spec; None if something has to be looked up first."""
    try:
        if spec.type in {MetricSourceType.RESOURCE, MetricSourceType.CONTAINER_RESOURCE}:
            return PodUsage(namespace)
        if spec.type == MetricSourceType.PODS and spec.pods is not None:
            metric = spec.pods.metric
            return PodsMetric(namespace, metric.name, pod_selector, _text(metric.selector))
        if spec.type == MetricSourceType.EXTERNAL and spec.external is not None:
            metric = spec.external.metric
            return ExternalMetric(namespace, metric.name, _text(metric.selector))
    except SelectorError as error:
        return FetchFailure(message=str(error))
    is_object = spec.type == MetricSourceType.OBJECT and spec.object is not None
    return None if is_object else _NOT_SET


def samples_for(
    spec: MetricSpec, question: Query, answers: Mapping[Query, Answer], pods: tuple[PodSnapshot, ...]
) -> MetricSamples:
    """Return what the answers say to one metric of one autoscaler."""
    answer = usage_in(question, answers) if isinstance(question, PodUsage) else answers[question]
    if not isinstance(answer, NamespaceUsage):
        assert not isinstance(answer, ClusterUsage | None), f"{question} was not asked"
        return answer
    return answer.of(pods, *measured_by(spec))


def measured_by(spec: MetricSpec) -> tuple[str, str]:
    """Return the resource, and the container or "" for all of them, whose usage a metric is."""
    if spec.container_resource is not None and spec.type == MetricSourceType.CONTAINER_RESOURCE:
        return spec.container_resource.name, spec.container_resource.container
    return spec.resource.name if spec.resource else "", ""


def usage_in(question: PodUsage, answers: Mapping[Query, Answer]) -> Answer | None:
    """Return the answer about one namespace, out of the answer about all of them if only that was asked for."""
    whole = answers.get(ALL_NAMESPACES)
    return whole.within(question.namespace) if isinstance(whole, ClusterUsage) else answers.get(question)


def _asked(query: ExternalMetric | ObjectMetric | PodsMetric) -> Asked:
    """Return what an answer has to be about (fault F40)."""
    if isinstance(query, ObjectMetric):
        name = query.namespace if query.resource == "namespaces" else query.name
        return Asked(metric=query.metric, namespace=query.namespace, object=name)
    return Asked(metric=query.metric, namespace=query.namespace)


def _text(selector: LabelSelector | None) -> str:
    # No selector means every series, although an absent label selector usually selects nothing.
    return "" if selector is None else str(Selector.from_label_selector(selector))
