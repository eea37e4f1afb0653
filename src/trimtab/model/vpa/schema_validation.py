"""What the VPA's definition refuses before any webhook is asked: names that must be there, words that must be known.

Offline there is no API server to hold the schema against the object, so `trimtab validate` asks here too.
"""

from collections.abc import Iterator

from trimtab.model.bounds import name_errors, quantity_errors
from trimtab.model.fielderror import FieldError, FieldPath, invalid, not_supported, required
from trimtab.model.vpa.options import policies_of
from trimtab.model.vpa.types import (
    ContainerControlledValues,
    ContainerResourcePolicy,
    EvictionChangeRequirement,
    VerticalPodAutoscaler,
)

LONGEST_NAME = 253
"""Characters of a name, as Kubernetes has it."""
_SPEC = FieldPath("spec")


def schema_errors(vpa: VerticalPodAutoscaler) -> Iterator[FieldError]:
    """Yield what the definition's schema would refuse and the webhook's rules do not look at."""
    if vpa.spec.target_ref is not None:
        for name, text in (("kind", vpa.spec.target_ref.kind), ("name", vpa.spec.target_ref.name)):
            if not text:
                yield required(_SPEC.child("targetRef", name))
            yield from name_errors(text, LONGEST_NAME, _SPEC.child("targetRef", name))
    policies = _SPEC.child("resourcePolicy", "containerPolicies")
    for position, policy in enumerate(policies_of(vpa)):
        yield from _check_amounts(policy, policies.index(position))
        values = policy.controlled_values
        if values is not None and values not in set(ContainerControlledValues):
            path = policies.index(position).child("controlledValues")
            yield not_supported(path, values, ContainerControlledValues)
    yield from _check_evictions(vpa)
    for position, recommender in enumerate(vpa.spec.recommenders):
        if not recommender.name:
            yield required(_SPEC.child("recommenders").index(position).child("name"))


def _check_amounts(policy: ContainerResourcePolicy, path: FieldPath) -> Iterator[FieldError]:
    for bound, amounts in (("minAllowed", policy.min_allowed), ("maxAllowed", policy.max_allowed)):
        for name, amount in amounts.items():
            where = path.child(bound).key(name)
            yield from quantity_errors(amount, where)
            if amount.sign < 0:
                yield invalid(where, str(amount), "must be greater than or equal to 0")


def _check_evictions(vpa: VerticalPodAutoscaler) -> Iterator[FieldError]:
    requirements = vpa.spec.update_policy.eviction_requirements if vpa.spec.update_policy else ()
    for position, requirement in enumerate(requirements):
        path = _SPEC.child("updatePolicy", "evictionRequirements").index(position)
        if not requirement.resources:
            yield required(path.child("resources"))
        if requirement.change_requirement not in set(EvictionChangeRequirement):
            change = requirement.change_requirement
            yield not_supported(path.child("changeRequirement"), change, EvictionChangeRequirement)
