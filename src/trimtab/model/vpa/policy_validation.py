"""Rules of a container policy: bounds, modes, startup boost, and Trimtab's percentiles and margin."""

from collections.abc import Iterator

from trimtab.model.core.pod import CPU, MEMORY, ResourceList
from trimtab.model.field_errors import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    quote,
    required,
)
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.defaults import VPAOptions, per_vpa_config_fields
from trimtab.model.vpa.types import (
    ContainerControlledValues,
    ContainerResourcePolicy,
    ContainerScalingMode,
    StartupBoost,
)

CONTROLLED_RESOURCES = (CPU, MEMORY)
STARTUP_BOOST_TYPES = ("Factor", "Quantity")

_MILLI = 1_000_000
_UNIT = 1_000_000_000
_ONE = Quantity.from_int(1)
_WHOLE = {
    CPU: (_MILLI, "must be a whole number of milli CPUs"),
    MEMORY: (_UNIT, "must be a whole number of bytes"),
}


def validate_policy(
    policy: ContainerResourcePolicy, path: FieldPath, options: VPAOptions
) -> tuple[list[FieldError], list[str]]:
    """Return the errors of a container policy, and warnings of what only the stored object allows."""
    errors = list(_check_basics(policy, path))
    unsupported, warnings = _check_controlled_resources(policy, path.child("controlledResources"), options)
    errors += unsupported
    errors += _check_controlled_values(policy, path.child("controlledValues"))
    errors += _check_per_vpa_config(policy, path, options)
    errors += validate_startup_boost(policy.startup_boost, path.child("startupBoost"), options)
    errors += _check_estimator(policy, path)
    return errors, warnings


def validate_startup_boost(
    boost: StartupBoost | None, path: FieldPath, options: VPAOptions
) -> Iterator[FieldError]:
    """Yield the errors of a startup boost."""
    if boost is None:
        return
    if not options.allow_cpu_startup_boost:
        detail = "in order to use startupBoost, you must enable feature gate CPUStartupBoost in the admission-controller args"
        yield forbidden(path, detail)
        return
    cpu, path = boost.cpu, path.child("cpu")
    if cpu is None:
        return
    if cpu.type == "Factor":
        if cpu.factor is None:
            yield required(path.child("factor"), "required when type is Factor")
        elif cpu.factor < 1:
            yield invalid(path.child("factor"), cpu.factor, "must be >= 1 for type Factor")
    elif cpu.type == "Quantity":
        if cpu.quantity is None:
            yield required(path.child("quantity"), "required when type is Quantity")
        yield from _check_whole(CPU, cpu.quantity, path.child("quantity"))
    elif cpu.type:
        yield not_supported(path.child("type"), cpu.type, STARTUP_BOOST_TYPES)
    else:
        yield required(path.child("type"), "must be either Factor or Quantity")


def _check_basics(policy: ContainerResourcePolicy, path: FieldPath) -> Iterator[FieldError]:
    if not policy.container_name:
        yield required(path.child("containerName"))
    if policy.mode is not None and policy.mode not in set(ContainerScalingMode):
        yield not_supported(path.child("mode"), policy.mode, ContainerScalingMode)
    yield from _check_bounds(policy.min_allowed, policy.max_allowed, path)


def _check_bounds(least: ResourceList, most: ResourceList, path: FieldPath) -> Iterator[FieldError]:
    for resource in sorted(least.keys() & most.keys()):
        if most[resource] < least[resource]:
            detail = f"max resource for {resource} is lower than min of {quote(str(least[resource]))}"
            yield invalid(path.child("maxAllowed").key(resource), str(most[resource]), detail)
    for name, bounds in (("minAllowed", least), ("maxAllowed", most)):
        for resource in sorted(bounds):
            yield from _check_whole(resource, bounds[resource], path.child(name).key(resource))


def _check_whole(resource: str, quantity: Quantity | None, path: FieldPath) -> Iterator[FieldError]:
    """Reject an amount that a container cannot have exactly."""
    if quantity is None or resource not in _WHOLE:
        return
    unit, detail = _WHOLE[resource]
    if quantity.nanos % unit:
        yield invalid(path, str(quantity), detail)


def _check_controlled_resources(
    policy: ContainerResourcePolicy, path: FieldPath, options: VPAOptions
) -> tuple[list[FieldError], list[str]]:
    errors, warnings = [], []
    for position, resource in enumerate(policy.controlled_resources or ()):
        if resource in CONTROLLED_RESOURCES:
            continue
        if resource in options.existing_controlled_resources:
            supported = ", ".join(map(quote, CONTROLLED_RESOURCES))
            warnings.append(
                f"{path.index(position)}: unsupported value {quote(resource)} is allowed only because it is present "
                f"in the existing VPA object; supported values: {supported}"
            )
        else:
            errors.append(not_supported(path.index(position), resource, CONTROLLED_RESOURCES))
    return errors, warnings


def _check_controlled_values(policy: ContainerResourcePolicy, path: FieldPath) -> Iterator[FieldError]:
    if (
        policy.mode == ContainerScalingMode.OFF
        and policy.controlled_values == ContainerControlledValues.REQUESTS_AND_LIMITS
    ):
        yield forbidden(path, "controlledValues shouldn't be specified if container scaling mode is off")


def _check_per_vpa_config(
    policy: ContainerResourcePolicy, path: FieldPath, options: VPAOptions
) -> Iterator[FieldError]:
    fields = per_vpa_config_fields(policy)
    if not options.allow_per_vpa_config:
        detail = "not supported when feature flag PerVPAConfig is disabled"
        yield from (forbidden(path.child(name), detail) for name in fields)
        return
    ratio, bump = policy.oom_bump_up_ratio, policy.oom_min_bump_up
    if ratio is not None and ratio < _ONE:
        yield invalid(path.child("oomBumpUpRatio"), _plain(ratio), "must be greater than or equal to 1.0")
    if bump is not None and bump.sign < 0:
        yield invalid(path.child("oomMinBumpUp"), _plain(bump), "must be greater than or equal to 0")
    for name in ("memoryAggregationIntervalSeconds", "memoryAggregationIntervalCount"):
        value = fields.get(name)
        if isinstance(value, int) and value < 1:
            yield invalid(path.child(name), value, "must be greater than or equal to 1")


def _check_estimator(policy: ContainerResourcePolicy, path: FieldPath) -> Iterator[FieldError]:
    """Check Trimtab's own settings: percentiles as fractions, in order, and the margin."""
    percentiles = {
        "lowerBoundPercentile": policy.lower_bound_percentile,
        "targetPercentile": policy.target_percentile,
        "upperBoundPercentile": policy.upper_bound_percentile,
    }
    below: tuple[str, Quantity] | None = None
    for name, value in percentiles.items():
        if value is None:
            continue
        if value.sign <= 0 or value > _ONE:
            yield invalid(path.child(name), str(value), "must be greater than 0 and at most 1")
        elif below is not None and value < below[1]:
            yield invalid(
                path.child(name), str(value), f"must not be lower than {below[0]}, which is {below[1]}"
            )
        else:
            below = (name, value)
    margin = policy.safety_margin_fraction
    if margin is not None and margin.sign < 0:
        yield invalid(path.child("safetyMarginFraction"), str(margin), "must be greater than or equal to 0")


def _plain(quantity: Quantity) -> float | int:
    """Return the number as upstream prints it, whole where possible."""
    number = quantity.as_float()
    return int(number) if number.is_integer() else number
