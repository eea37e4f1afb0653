"""The five types of metrics: where each has its source, what it is called, which targets it takes, and how its values are shown.

Only the classes here name the fields of a type, beside `types` and the older versions. `decide` and the operator have a class or
a function of their own per type, for proposals and for queries.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from trimtab.model.core.pod import MEMORY
from trimtab.model.field_errors import FieldError, FieldPath, FieldWarning, forbidden, invalid, required
from trimtab.model.hpa.metric_fields import validate_activation
from trimtab.model.hpa.types import (
    ContainerResourceMetricSource,
    ContainerResourceMetricStatus,
    ExternalMetricSource,
    ExternalMetricStatus,
    HorizontalPodAutoscaler,
    MetricIdentifier,
    MetricSourceType,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricTargetType,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricSource,
    ResourceMetricStatus,
)
from trimtab.model.hpa.validation.reference import ReferenceOptions, validate_reference
from trimtab.model.json.wire import Wire
from trimtab.model.labels import names
from trimtab.model.labels.requirement import Requirement
from trimtab.model.labels.selector import Selector, SelectorError, go_string
from trimtab.model.quantity import Quantity
from trimtab.model.readable import quantity_of_bytes

S = TypeVar("S")
R = TypeVar("R", bound=ResourceMetricSource | ContainerResourceMetricSource)
N = TypeVar("N", bound=PodsMetricSource | ObjectMetricSource | ExternalMetricSource)

MOST_IN_A_COLUMN = 2
"""How many metrics `kubectl get hpa` shows of an HPA."""
UNKNOWN = "<unknown>"
"""The value of a metric that was not read yet, or cannot be read."""

_TARGET_TYPES = {
    "averageUtilization": MetricTargetType.UTILIZATION,
    "averageValue": MetricTargetType.AVERAGE_VALUE,
    "value": MetricTargetType.VALUE,
}
_OF_SPEC = {"target", "activation"}
"""What a source has and its status has not."""
_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_QUOTA_RESOURCES = frozenset(
    {f"{prefix}{name}" for prefix in ("requests.", "limits.") for name in _CONTAINER_RESOURCES}
    | {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"}
    | {"persistentvolumeclaims", "storage", "requests.storage"}
    | {"services.nodeports", "services.loadbalancers"}
)
_HUGE_PAGES = "hugepages-"
_IS_IGNORED = "so this number is ignored: remove it"


class Measured(NamedTuple):
    """What the metrics API measures of each pod."""

    resource: str = ""
    container: str = ""
    """The container; empty for the whole pod."""


class TargetRule(NamedTuple):
    """Which numbers a target may have, in JSON names, and the errors of the API server."""

    numbers: tuple[str, ...]
    """The target needs one of them. The first that is set says of which type the target is."""
    missing_at: str
    missing: str
    both: str = ""
    """The error if all of them are set; empty if that is allowed."""

    def type_of(self, given: Collection[str]) -> MetricTargetType:
        """Return the type of a target with these numbers."""
        return _TARGET_TYPES[next((name for name in self.numbers if name in given), self.numbers[-1])]


class MetricKind(Generic[S]):
    """One type of metric."""

    type_name: MetricSourceType
    attribute: str
    """The field of `MetricSpec` and of `MetricStatus`."""
    source_type: type[Any]
    status_type: type[Any]
    target: TargetRule
    flat: tuple[str, ...]
    """The fields in older versions, in their order. `#` stands for `target` in a spec, and for `current` in a status."""
    wakes = False
    """Whether the metric can be read without pods, so that it can wake a workload at zero."""

    def __init__(self) -> None:
        self.field = self.type_name[:1].lower() + self.type_name[1:]
        """The same field in JSON."""
        self._identity = tuple(name for name in self.source_type.__struct_fields__ if name not in _OF_SPEC)

    def part(self, metric: MetricSpec | MetricStatus) -> Any:
        """Return the source or its value in the field of this type, if it is set."""
        return getattr(metric, self.attribute)

    def has(self, field: str) -> bool:
        """Return whether sources of this type have a field, by its name in JSON."""
        return field in self.source_type.__struct_encode_fields__

    def identity(self, metric: MetricSpec | MetricStatus) -> tuple[object, ...]:
        """Return what source and status have in common."""
        part = self.part(metric)
        return tuple(getattr(part, name) for name in self._identity)

    def status(self, source: S, current: MetricValueStatus) -> MetricStatus:
        """Return the status entry of a metric."""
        named = {name: getattr(source, name) for name in self._identity}
        part = self.status_type(current=current, **named)
        return MetricStatus(type=self.type_name, **{self.attribute: part})

    def name(self, source: S) -> str:
        """Return the name of the resource or of the metric."""
        raise NotImplementedError

    def label(self, source: S) -> str:
        """Return the short name, with the container or the selector."""
        return self.name(source)

    def identifier(self, source: S) -> MetricIdentifier | None:
        """Return the name and the selector in a metrics API, unless it is a resource."""
        return None

    def activation(self, source: S) -> Quantity | None:
        """Return the number up to which the metric asks for nothing, if it has one."""
        return None

    def measured(self, source: S) -> Measured:
        """Return the measured resource, empty if it is none."""
        return Measured()

    def validate(self, source: S, path: FieldPath, objects: ReferenceOptions) -> list[FieldError]:
        """Check a source."""
        raise NotImplementedError

    def unused_target(self, target: MetricTarget, path: str) -> list[FieldWarning]:
        """Warn of a target whose type names an absent number, or another than the one in use."""
        return []

    def validate_target(self, target: MetricTarget, path: FieldPath) -> list[FieldError]:
        """Check a target."""
        errors = [] if target.type else [required(path.child("type"), "must specify a metric target type")]
        if target.type not in set(MetricTargetType):
            detail = "must be either Utilization, Value, or AverageValue"
            errors.append(invalid(path.child("type"), target.type, detail))
        for name, value in {"value": target.value, "averageValue": target.average_value}.items():
            if value is not None and value.sign <= 0:
                errors.append(invalid(path.child(name), value, "must be positive"))
        if target.average_utilization is not None and target.average_utilization < 1:
            detail = "must be greater than 0"
            errors.append(invalid(path.child("averageUtilization"), target.average_utilization, detail))
        rule = self.target
        given = [name for name in rule.numbers if number_of(target, name) is not None]
        if not given:
            errors.append(required(path.child(rule.missing_at), rule.missing))
        elif rule.both and len(given) == len(rule.numbers):
            excess = next(name for name in rule.numbers if name != rule.missing_at)
            errors.append(forbidden(path.child(excess), rule.both))
        return errors


class _OfResource(MetricKind[R]):
    """A resource that metrics-server measures."""

    flat: tuple[str, ...] = ("name", "#AverageUtilization", "#AverageValue")
    target = TargetRule(
        ("averageUtilization", "averageValue"),
        missing_at="averageUtilization",
        missing="must set either a target raw value or a target utilization",
        both="may not set both a target raw value and a target utilization",
    )

    def name(self, source: R) -> str:
        return source.name

    def measured(self, source: R) -> Measured:
        return Measured(source.name)


class _OfName(MetricKind[N]):
    """A metric with a name and a selector."""

    def name(self, source: N) -> str:
        return source.metric.name

    def label(self, source: N) -> str:
        return _format(source.metric)

    def identifier(self, source: N) -> MetricIdentifier:
        return source.metric

    def validate(self, source: N, path: FieldPath, objects: ReferenceOptions) -> list[FieldError]:
        # As upstream, leave the selector unchecked: a bad one shows as a condition at run time.
        name, missing = source.metric.name, "must specify a metric name"
        errors = names.check_name(name, path.child("metric", "name"), names.path_segment_problems, missing)
        errors += self.validate_target(source.target, path.child("target"))
        if source.activation is not None:
            errors += validate_activation(source.activation, path.child("activation"))
        return errors

    def activation(self, source: N) -> Quantity | None:
        return source.activation


class ObjectKind(_OfName[ObjectMetricSource]):
    """A metric that describes one object."""

    type_name, attribute = MetricSourceType.OBJECT, "object"
    source_type, status_type = ObjectMetricSource, ObjectMetricStatus
    flat = ("target", "metricName", "#Value", "selector", "averageValue")
    target = TargetRule(
        ("averageValue", "value"), "averageValue", "must set either a target value or averageValue"
    )
    wakes = True

    def validate(
        self, source: ObjectMetricSource, path: FieldPath, objects: ReferenceOptions
    ) -> list[FieldError]:
        errors = validate_reference(source.described_object, path.child("describedObject"), objects)
        return errors + super().validate(source, path, objects)

    def unused_target(self, target: MetricTarget, path: str) -> list[FieldWarning]:
        warnings = []
        has_both = target.value is not None and target.average_value is not None
        for name in reversed(self.target.numbers):
            kind = _TARGET_TYPES[name]
            if target.type == kind and number_of(target, name) is None:
                message = (
                    f"type is {kind} but {name} is not set, so the metric fails when it is read: set {name}"
                )
                warnings.append(FieldWarning(f"{path}.type", message))
            if target.type != kind and has_both:
                warnings.append(FieldWarning(f"{path}.{name}", f"type is {target.type}, {_IS_IGNORED}"))
        return warnings


class PodsKind(_OfName[PodsMetricSource]):
    """A metric of each pod, averaged."""

    type_name, attribute = MetricSourceType.PODS, "pods"
    source_type, status_type = PodsMetricSource, PodsMetricStatus
    flat = ("metricName", "#AverageValue", "selector")
    target = TargetRule(("averageValue",), "averageValue", "must specify a positive target averageValue")


class ResourceKind(_OfResource[ResourceMetricSource]):
    """CPU or memory of each pod."""

    type_name, attribute = MetricSourceType.RESOURCE, "resource"
    source_type, status_type = ResourceMetricSource, ResourceMetricStatus

    def validate(
        self, source: ResourceMetricSource, path: FieldPath, objects: ReferenceOptions
    ) -> list[FieldError]:
        # The name itself is free here: the metrics API may serve resources that no pod can request.
        errors = [] if source.name else [required(path.child("name"), "must specify a resource name")]
        return errors + self.validate_target(source.target, path.child("target"))


class ContainerResourceKind(_OfResource[ContainerResourceMetricSource]):
    """CPU or memory of one container in each pod."""

    type_name, attribute = MetricSourceType.CONTAINER_RESOURCE, "container_resource"
    source_type, status_type = ContainerResourceMetricSource, ContainerResourceMetricStatus
    flat = (*_OfResource.flat, "container")

    def label(self, source: ContainerResourceMetricSource) -> str:
        return f"{source.container} {source.name}"

    def measured(self, source: ContainerResourceMetricSource) -> Measured:
        return Measured(source.name, source.container)

    def validate(
        self, source: ContainerResourceMetricSource, path: FieldPath, objects: ReferenceOptions
    ) -> list[FieldError]:
        name, container = path.child("name"), path.child("container")
        return [
            *names.check_name(source.name, name, _resource_name_problems, "must specify a resource name"),
            *names.check_name(
                source.container, container, names.dns1123_label_problems, "must specify a container"
            ),
            *self.validate_target(source.target, path.child("target")),
        ]


class ExternalKind(_OfName[ExternalMetricSource]):
    """A metric that belongs to no Kubernetes object."""

    type_name, attribute = MetricSourceType.EXTERNAL, "external"
    source_type, status_type = ExternalMetricSource, ExternalMetricStatus
    flat = ("metricName", "metricSelector", "#Value", "#AverageValue")
    target = TargetRule(
        ("value", "averageValue"),
        missing_at="averageValue",
        missing="must set either a target value for metric or a per-pod target",
        both="may not set both a target value for metric and a per-pod target",
    )
    wakes = True

    def unused_target(self, target: MetricTarget, path: str) -> list[FieldWarning]:
        if target.type != MetricTargetType.VALUE or target.value is not None or target.average_value is None:
            return []
        message = "type is Value but only averageValue is set, and that is what is used: write AverageValue"
        return [FieldWarning(f"{path}.type", message)]


KINDS: dict[str, MetricKind[Any]] = {
    kind.type_name: kind
    for kind in (ObjectKind(), ExternalKind(), PodsKind(), ResourceKind(), ContainerResourceKind())
}
"""Every type, in the order in which the API server checks them."""
WAKING = frozenset(kind.type_name for kind in KINDS.values() if kind.wakes)
"""The types that can wake a workload at zero."""


def kind_of(metric: MetricSpec | MetricStatus) -> MetricKind[Any] | None:
    """Return the kind of a metric whose type is known and whose source is set."""
    kind = KINDS.get(metric.type)
    return None if kind is None or kind.part(metric) is None else kind


def name_of(metric: MetricSpec) -> str:
    """Return the name of the resource or of the metric, empty if the spec has none."""
    kind = kind_of(metric)
    return "" if kind is None else kind.name(kind.part(metric))


def label_of(metric: MetricSpec) -> str:
    """Return a metric's short name, with its container or its selector: `queue_length{queue="mail"}`."""
    kind = kind_of(metric)
    return (kind and kind.label(kind.part(metric))) or metric.type


def identifier_of(metric: MetricSpec) -> MetricIdentifier | None:
    """Return the name and the selector of a metric in a metrics API, or None if it is a resource."""
    kind = kind_of(metric)
    return None if kind is None else kind.identifier(kind.part(metric))


def measured_by(metric: MetricSpec | MetricStatus) -> Measured:
    """Return the resource that a metric measures, empty if it is none."""
    kind = kind_of(metric)
    return Measured() if kind is None else kind.measured(kind.part(metric))


def target_of(metric: MetricSpec) -> MetricTarget:
    """Return the target of a metric, which is empty if the spec names no source."""
    kind = kind_of(metric)
    target: MetricTarget = MetricTarget() if kind is None else kind.part(metric).target
    return target


def current_of(status: MetricStatus) -> MetricValueStatus:
    """Return the value of a metric, which is empty if it could not be read."""
    kind = kind_of(status)
    current: MetricValueStatus = MetricValueStatus() if kind is None else kind.part(status).current
    return current


def number_of(numbers: MetricTarget | MetricValueStatus, name: str) -> Quantity | int | None:
    """Return the number of a target or a value with this name in JSON."""
    if name == "averageUtilization":
        return numbers.average_utilization
    return numbers.value if name == "value" else numbers.average_value


def identity_of(metric: MetricSpec | MetricStatus) -> tuple[object, ...]:
    """Return what identifies a metric beside its value and its target."""
    kind = kind_of(metric)
    return (metric.type,) if kind is None else (metric.type, kind.field, *kind.identity(metric))


def status_of(metric: MetricSpec, index: int, statuses: tuple[MetricStatus, ...]) -> MetricStatus:
    """Return the entry of this metric, preferably at its place, or an empty one.

    The places may differ: an entry may be missing, or the status may be older than the spec.
    """
    wanted = identity_of(metric)
    candidates = (*statuses[index : index + 1], *statuses)
    return next((status for status in candidates if identity_of(status) == wanted), MetricStatus())


def plain_names(text: str, metrics: Iterable[MetricSpec]) -> str:
    """Return a text of upstream's with labels instead of selectors in Go's notation, which stands after `(` or `/`."""
    for metric in metrics:
        identifier = identifier_of(metric)
        if identifier is not None and ("&LabelSelector{" in text or "nil" in text):
            selector, label = go_string(identifier.selector), label_of(metric)
            for before in (f"{identifier.name}({selector})", f"{identifier.name}/{selector}"):
                text = text.replace(before, label)
    return text


class MetricReading(Wire, frozen=True):
    """The last value of one metric beside its target, in the same unit, as `kubectl get hpa` writes them."""

    name: str
    current: str
    target: str

    def __str__(self) -> str:
        return f"{self.name} {self.current}/{self.target}"


def metric_readings(hpa: HorizontalPodAutoscaler) -> tuple[MetricReading, ...]:
    """Return a reading per metric of the spec, in its order."""
    return _readings(hpa.spec.metrics, hpa.status.current_metrics)


def targets_text(metrics: Sequence[MetricSpec], statuses: tuple[MetricStatus, ...]) -> str:
    """Return the values beside their targets for a column of `kubectl get`, as `cpu: 45%/50%, jobs: 3/10 + 1 more...`."""
    shown, left = metrics[:MOST_IN_A_COLUMN], len(metrics) - MOST_IN_A_COLUMN
    counts = Counter(map(name_of, shown))
    text = ", ".join(
        f"{reading.name if counts[name_of(metric)] > 1 else name_of(metric)}: {reading.current}/{reading.target}"
        for metric, reading in zip(shown, _readings(metrics, statuses), strict=False)
    )
    return f"{text} + {left} more..." if left > 0 else text


def _readings(metrics: Sequence[MetricSpec], statuses: tuple[MetricStatus, ...]) -> tuple[MetricReading, ...]:
    return tuple(_reading(metric, status_of(metric, index, statuses)) for index, metric in enumerate(metrics))


def _reading(metric: MetricSpec, status: MetricStatus) -> MetricReading:
    target, current = target_of(metric), current_of(status)
    number = next((name for name in _TARGET_TYPES if number_of(target, name) is not None), "value")
    unit = number_of(target, number)
    is_binary = measured_by(metric).resource == MEMORY or (
        isinstance(unit, Quantity) and unit.format == "BinarySI"
    )
    suffix = " (avg)" if number == "averageValue" else ""
    return MetricReading(
        name=label_of(metric),
        current=_text(number_of(current, number), is_binary=is_binary),
        target=_text(unit, is_binary=is_binary) + suffix,
    )


def _text(number: Quantity | int | None, *, is_binary: bool) -> str:
    """Return a value in the notation of its target. Memory is written in binary units in any case."""
    if number is None:
        return UNKNOWN
    if isinstance(number, int):
        return f"{number}%"
    return quantity_of_bytes(number) if is_binary else str(number)


def _format(metric: MetricIdentifier) -> str:
    if metric.selector is None:
        return metric.name
    try:
        requirements = Selector.from_label_selector(metric.selector).requirements
    except SelectorError:
        return metric.name
    conditions = ",".join(map(_format_condition, requirements))
    return f"{metric.name}{{{conditions}}}" if conditions else metric.name


def _format_condition(requirement: Requirement) -> str:
    """Return a condition as Prometheus and `kubectl -l` users write it, with its values in quotes."""
    values = ", ".join(f'"{value}"' for value in requirement.values)
    match requirement.operator:
        case "=" | "==" | "!=":
            return f"{requirement.key}{'!=' if requirement.operator == '!=' else '='}{values}"
        case "exists":
            return requirement.key
        case "!":
            return f"!{requirement.key}"
        case _:
            return f"{requirement.key} {requirement.operator} ({values})"


def _resource_name_problems(name: str) -> list[str]:
    problems = names.label_key_problems(name)
    if "/" in name:
        if "kubernetes.io/" not in name and not _is_extended(name):
            problems.append("doesn't follow extended resource name standard")
        return problems
    is_container_resource = name in _CONTAINER_RESOURCES or name.startswith(_HUGE_PAGES)
    is_quota_resource = name in _QUOTA_RESOURCES or name.startswith(f"requests.{_HUGE_PAGES}")
    if not problems and not is_container_resource and not is_quota_resource:
        problems.append("must be a standard resource type or fully qualified")
    if not is_container_resource:
        problems.append("must be a standard resource for containers")
    return problems


def _is_extended(name: str) -> bool:
    # A quota on it would be called `requests.NAME`, which has to be a legal name too.
    return not name.startswith("requests.") and not names.label_key_problems(f"requests.{name}")
