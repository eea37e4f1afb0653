"""One metric spec and its reading, to one proposal or one failure."""

from collections.abc import Callable

from trimtab.decide.horizontal.proposals.external import NO_TARGET, propose_external
from trimtab.decide.horizontal.proposals.object import is_average, propose_object
from trimtab.decide.horizontal.proposals.pods import propose_pods
from trimtab.decide.horizontal.proposals.proposal import Failure, Misconfigured, Proposal, Unusable
from trimtab.decide.horizontal.proposals.resource import propose_resource
from trimtab.decide.horizontal.proposals.scene import Scene
from trimtab.decide.horizontal.readings import Reading
from trimtab.model.hpa.types import MetricSourceType, MetricSpec
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError

_NO_SOURCE = "must populate information for the given metric source"


def of_metric(spec: MetricSpec, reading: Reading, scene: Scene) -> Proposal | Failure:
    """Return what one metric asks for, or why it cannot be used."""
    propose = _KINDS.get(spec.type)
    if propose is None:
        message = f'unknown metric source type "{spec.type}"'
        return Failure(
            type=spec.type,
            reason="InvalidMetricSourceType",
            message=message,
            error=message,
            is_spec_error=True,
        )
    try:
        return propose(spec, reading, scene)
    except Unusable as cause:
        return Failure(
            type=spec.type,
            reason=f"FailedGet{spec.type}Metric",
            message=str(cause),
            error=f"{_prefix(spec)}{cause.detail}{cause}",
            is_misconfigured=cause.is_misconfigured,
            is_refused=cause.is_refused,
        )


def _resource(spec: MetricSpec, reading: Reading, scene: Scene) -> Proposal:
    if spec.resource is None:
        raise Misconfigured(_NO_SOURCE)
    return propose_resource(spec.resource.name, None, spec.resource.target, reading, scene)


def _container_resource(spec: MetricSpec, reading: Reading, scene: Scene) -> Proposal:
    source = spec.container_resource
    if source is None:
        raise Misconfigured(_NO_SOURCE)
    return propose_resource(source.name, source.container, source.target, reading, scene)


def _pods(spec: MetricSpec, reading: Reading, scene: Scene) -> Proposal:
    if spec.pods is None:
        raise Misconfigured(_NO_SOURCE)
    _check_metric_selector(spec.pods.metric.selector)
    return propose_pods(spec.pods, reading, scene)


def _object(spec: MetricSpec, reading: Reading, scene: Scene) -> Proposal:
    if spec.object is None:
        raise Misconfigured(_NO_SOURCE)
    _check_metric_selector(spec.object.metric.selector)
    try:
        return propose_object(spec.object, reading, scene)
    except Unusable as cause:
        detail = f"failed to get {spec.object.metric.name} object metric: " if is_average(spec.object) else ""
        raise cause.reworded(str(cause), detail) from cause


def _external(spec: MetricSpec, reading: Reading, scene: Scene) -> Proposal:
    source = spec.external
    if source is None:
        raise Misconfigured(_NO_SOURCE)
    if source.target.average_value is None and source.target.value is None:
        raise Misconfigured(NO_TARGET)
    try:
        _check_metric_selector(source.metric.selector)
        return propose_external(source, reading, scene)
    except Unusable as cause:
        is_average_value = source.target.average_value is not None
        metric = (
            f"{source.metric.name} external metric"
            if is_average_value
            else f"external metric {source.metric.name}"
        )
        raise cause.reworded(str(cause), f"failed to get {metric}: ") from cause


def _check_metric_selector(selector: LabelSelector | None) -> None:
    """Admission does not look into metric selectors, so a broken one first shows here."""
    if selector is None:
        return
    try:
        Selector.from_label_selector(selector)
    except SelectorError as error:
        raise Misconfigured(str(error)) from error


_KINDS: dict[str, Callable[[MetricSpec, Reading, Scene], Proposal]] = {
    MetricSourceType.RESOURCE: _resource,
    MetricSourceType.CONTAINER_RESOURCE: _container_resource,
    MetricSourceType.PODS: _pods,
    MetricSourceType.OBJECT: _object,
    MetricSourceType.EXTERNAL: _external,
}


def _prefix(spec: MetricSpec) -> str:
    """Return how upstream begins the error of a metric, which is a little different for every kind."""
    if spec.resource and spec.type == MetricSourceType.RESOURCE:
        return f"failed to get {spec.resource.name} resource metric value: "
    if spec.container_resource and spec.type == MetricSourceType.CONTAINER_RESOURCE:
        return f"failed to get {spec.container_resource.container} container metric value: "
    if spec.pods and spec.type == MetricSourceType.PODS:
        return "failed to get pods metric value: "
    if spec.object and spec.type == MetricSourceType.OBJECT:
        return "failed to get object metric value: "
    if spec.external and spec.type == MetricSourceType.EXTERNAL:
        return f"failed to get {spec.external.metric.name} external metric value: "
    return f"failed to get {spec.type} metric value: "
