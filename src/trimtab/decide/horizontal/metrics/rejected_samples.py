"""Which limits the samples of each metric have, and since when they are refused.

A text with an age in it is a new text in every sync: each costs a status write and an event. So the moment at which a
metric was first refused is remembered, and every text says "since" it.
"""

import msgspec

from trimtab.decide.horizontal.metrics.metric_keys import key_of
from trimtab.decide.horizontal.metrics.proposal import Failure, Proposal
from trimtab.decide.horizontal.observation.staleness import SampleAgeLimits, limits_at
from trimtab.decide.horizontal.status.builder import DecisionBuilder
from trimtab.model.hpa.types import MetricSpec


class Refusals:
    """The limits of one decision, and what is remembered of those that refused a sample."""

    __slots__ = ("_draft", "_refused", "usual")

    def __init__(self, draft: DecisionBuilder) -> None:
        """Begin with what the last decision remembered."""
        self._draft = draft
        self._refused: dict[str, float] = {}
        self.usual = limits_at(draft.now, draft.seen.settings, draft.seen.compat)

    def limits_of(self, spec: MetricSpec) -> SampleAgeLimits:
        """Return the limits of one metric: its own age, and the moment that a refusal is told to have begun."""
        limits, refused = self.usual, self._draft.memory.refused
        if spec.max_age_seconds is not None:
            limits = limits.with_max_age(spec.max_age_seconds)
        if refused and (since := refused.get(key_of(spec))) is not None:
            limits = msgspec.structs.replace(limits, since=since)
        return limits

    def take(self, spec: MetricSpec, result: Proposal | Failure, limits: SampleAgeLimits) -> None:
        """Remember since when samples of a metric are refused, if they are."""
        if result.is_refused if isinstance(result, Failure) else result.refused:
            self._refused[key_of(spec)] = limits.since

    def finish(self) -> None:
        """Keep what is to be remembered."""
        draft = self._draft
        if self._refused != draft.memory.refused:
            draft.memory = msgspec.structs.replace(draft.memory, refused=self._refused)
