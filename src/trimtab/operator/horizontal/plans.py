"""What a round has to ask for each autoscaler, kept as long as its object and its target stay the same."""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.decide.horizontal import Failed
from trimtab.metrics.queries import PodUsage, Query
from trimtab.model.core.meta import Condition
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec
from trimtab.operator.horizontal.targets import Aim
from trimtab.operator.horizontal.usage import EVERYWHERE

Wanted = frozenset[Query]

_ONLY_USAGE: Wanted = frozenset({EVERYWHERE})


@dataclass(frozen=True, slots=True)
class Plan:
    """The answers that one decision waits for."""

    spec: HorizontalPodAutoscalerSpec
    conditions: tuple[Condition, ...]
    aim: Aim
    wanted: Wanted
    """The questions, with the usage of the pods of its namespace."""
    wanted_whole: Wanted
    """The same, with the usage of all pods instead."""
    usage: PodUsage | None
    """The question for the usage of the pods of its namespace; None if it is not wanted."""

    def is_for(self, hpa: HorizontalPodAutoscaler, aim: Aim) -> bool:
        """Return whether it would be made again just so: no more of an object than this goes into it."""
        return self.aim is aim and self.spec is hpa.spec and self.conditions is hpa.status.conditions

    @property
    def is_only_usage(self) -> bool:
        """Return whether nothing but the usage of pods is asked for."""
        return self.wanted_whole is _ONLY_USAGE


def plan_of(hpa: HorizontalPodAutoscaler, aim: Aim, questions: Iterable[Query | Failed]) -> Plan:
    """Return the plan for an object and its target."""
    wanted = frozenset(one for one in questions if not isinstance(one, Failed))
    usage = next((one for one in wanted if isinstance(one, PodUsage)), None)
    whole = wanted
    if usage is not None:
        # Nearly all plans are this one set; sharing it makes them quick to compare.
        whole = _ONLY_USAGE if len(wanted) == 1 else wanted - {usage} | _ONLY_USAGE
    return Plan(hpa.spec, hpa.status.conditions, aim, wanted, whole, usage)


def namespaces_of(plans: Iterable[Plan]) -> set[str]:
    """Return the namespaces whose pods' usage is wanted."""
    return {plan.usage.namespace for plan in plans if plan.usage is not None and plan.usage.namespace}
