"""When two autoscalers would count the same pods, neither scales.

Upstream compares labels. We compare *effective* pods: those that an autoscaler really counts. So two workloads with
the same labels can each have an autoscaler, if both select by owner; two on one workload are always ambiguous.
"""

from collections.abc import Mapping
from functools import lru_cache

from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.selection.owners import (
    Chains,
    OwnerError,
    OwnerLookup,
    Target,
)
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import Selector, SelectorError

MOST_NAMED = 10
"""Rivals that a message names before it only counts them."""


class ConflictingHpa(Wire):
    """Another autoscaler of the namespace whose selector may match the same pods."""

    key: str
    selector: str
    strategy: str = SelectionStrategy.LABEL_SELECTOR
    target: Target = Target()


def rivals_of(
    pods: tuple[PodSnapshot, ...],
    rivals: tuple[ConflictingHpa, ...],
    found: Mapping[str, OwnerLookup],
    *,
    effective: bool,
) -> list[str]:
    """Return the keys of the rivals that count at least one of these pods, sorted."""
    return sorted(rival.key for rival in rivals if _counts_any(rival, pods, found, effective=effective))


def _counts_any(
    rival: ConflictingHpa, pods: tuple[PodSnapshot, ...], found: Mapping[str, OwnerLookup], *, effective: bool
) -> bool:
    selector = parsed(rival.selector)
    if isinstance(selector, str):
        return False
    by_owner = effective and rival.strategy == SelectionStrategy.OWNER_REFERENCE
    chains = Chains(rival.target, found)
    return any(selector.matches(pod.labels) and not (by_owner and _is_not_owned(chains, pod)) for pod in pods)


def _is_not_owned(chains: Chains, pod: PodSnapshot) -> bool:
    try:
        return bool(chains.why_not_owned(pod))
    except OwnerError:
        return False  # the rival falls back to all pods, this one included


@lru_cache(maxsize=4096)
def parsed(selector: str) -> Selector | str:
    """Return the compiled selector, or the text of what is wrong with it."""
    try:
        return Selector.parse(selector)
    except SelectorError as error:
        return str(error)


def ambiguity_message(selector: str, keys: list[str], *, short: bool) -> str:
    """Name the autoscalers that fight over the pods of a selector."""
    named = keys
    if short and len(keys) > MOST_NAMED:
        named = [*keys[:MOST_NAMED], f"and {len(keys) - MOST_NAMED} more"]
    return f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(named)}]"
