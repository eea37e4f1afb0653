"""Checks the target's selector: it must be readable, and no other HPA may count the same pods.

Upstream compares labels. Trimtab compares *effective* pods, those that an HPA really counts. So two workloads with the same
labels can each have an HPA if both select by owner. Two HPAs on one workload always conflict, and then neither scales.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.owners import ConflictingHpa, OwnerLookup
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.reasons import Code
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.selection.owners import OwnerChains, OwnerError
from trimtab.decide.horizontal.selection.selection import Selection
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.labels.selector import Selector, SelectorError

INVALID = "InvalidSelector"
AMBIGUOUS = "AmbiguousSelector"

MOST_NAMED = 10
"""Conflicting HPAs that a message names before it only counts them."""

EXAMPLES = 2
"""HPAs that a message of Kubernetes 1.37 names."""


class SelectorProblem(NamedTuple):
    """Why the pods of a target cannot be counted, in upstream's words."""

    code: Code
    reason: str
    """Reason of the condition."""
    event: str
    """Reason of the event."""
    message: str
    error: str
    """Message of the event, and what the reconcile reports."""


MISSING = SelectorProblem(
    Code.SELECTOR_MISSING,
    INVALID,
    "SelectorRequired",
    "the HPA target's scale is missing a selector",
    "selector is required",
)


def check_selector(observation: Observation, selector: str, selection: Selection) -> SelectorProblem | None:
    """Return the problem of a selector, or None if its pods can be counted."""
    if not selector.strip():
        return MISSING
    compiled = parse_selector(selector)
    if isinstance(compiled, str):
        message = f"couldn't convert selector into a corresponding internal selector object: {compiled}"
        return SelectorProblem(Code.SELECTOR_INVALID, INVALID, INVALID, message, message)
    if not observation.conflicting_hpas:
        return None
    is_effective = observation.rules.ours
    pods = selection.pods if is_effective else observation.pods
    conflicts = conflicting_keys(
        pods, observation.conflicting_hpas, observation.owners, effective=is_effective
    )
    if not conflicts:
        return None
    message = _ambiguity_message(selector, sorted([*conflicts, observation.hpa.key]), observation.rules)
    return SelectorProblem(Code.AMBIGUOUS, AMBIGUOUS, AMBIGUOUS, message, message)


@lru_cache(maxsize=4096)
def parse_selector(selector: str) -> Selector | str:
    """Return the compiled selector, or the text of its error."""
    try:
        return Selector.parse(selector)
    except SelectorError as error:
        return str(error)


def conflicting_keys(
    pods: tuple[PodSnapshot, ...],
    hpas: tuple[ConflictingHpa, ...],
    lookups: Mapping[str, OwnerLookup],
    *,
    effective: bool,
) -> list[str]:
    """Return the keys of the HPAs that count at least one of these pods, sorted."""
    return sorted(hpa.key for hpa in hpas if _counts_any(hpa, pods, lookups, effective=effective))


def _counts_any(
    hpa: ConflictingHpa, pods: tuple[PodSnapshot, ...], lookups: Mapping[str, OwnerLookup], *, effective: bool
) -> bool:
    selector = parse_selector(hpa.selector)
    if isinstance(selector, str):
        return False
    by_owner = effective and hpa.strategy == SelectionStrategy.OWNER_REFERENCE
    chains = OwnerChains(hpa.target, lookups)
    return any(selector.matches(pod.labels) and not (by_owner and _is_not_owned(chains, pod)) for pod in pods)


def _is_not_owned(chains: OwnerChains, pod: PodSnapshot) -> bool:
    try:
        return bool(chains.reason_not_owned(pod))
    except OwnerError:
        return False  # the other HPA falls back to all pods, this one included


def _ambiguity_message(selector: str, keys: list[str], rules: Rules) -> str:
    if rules.minor == 37:
        # It takes any two of them.
        examples = " ".join(keys[:EXAMPLES])
        return f"pods by selector {selector} are controlled by more than one HPA (e.g. [{examples}])"
    named = keys
    if rules.ours and len(keys) > MOST_NAMED:
        named = [*keys[:MOST_NAMED], f"and {len(keys) - MOST_NAMED} more"]
    return f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(named)}]"
