"""Health of sources and rules.

A bad rule is disabled alone. The other rules keep serving. A query that a source rejects is paused alone, because its series
belong to one namespace and the rule serves all of them.
"""

import logging
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from trimtab.adapter.api.requests import MetricQuery
from trimtab.clock import Clock
from trimtab.model.readable import counted
from trimtab.pacing import Backoff

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 300.0
"""A rejected rule or query is retried after 15 s; each further rejection doubles the pause, up to 5 minutes."""

MAX_PAUSED = 256
"""Paused queries of one rule. The oldest is forgotten and asked again."""

_MAX_REASON = 500


class State(StrEnum):
    """The state of a source or a rule."""

    OK = "ok"
    FAILING = "failing"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Health:
    """The state of one source or rule, and the reason unless it is ok."""

    name: str
    state: State = State.OK
    reason: str = ""


def _back_off(clock: Clock) -> Backoff:
    return Backoff(clock, first=FIRST_PAUSE_SECONDS, longest=LONGEST_PAUSE_SECONDS)


class PausedQueries:
    """Remembers the queries of a rule that its source rejected, and pauses each of them alone."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._rejected: OrderedDict[MetricQuery, tuple[Backoff, str]] = OrderedDict()
        self._logged_at = float("-inf")

    def reason(self, query: MetricQuery) -> str:
        """Return why a query is paused at the moment, or an empty text."""
        back_off, reason = self._rejected.get(query, (None, ""))
        return reason if back_off is not None and back_off.is_waiting else ""

    def pause(self, query: MetricQuery, reason: str) -> None:
        """Pause a query."""
        now = self._clock.monotonic()
        # Tenants do not get the reason, so that the log must have it, and they choose how many queries there are.
        if query not in self._rejected and now - self._logged_at >= FIRST_PAUSE_SECONDS:
            self._logged_at = now
            log.warning("%s: %s is rejected: %s", self._name, query, reason)
        back_off, _ = self._rejected.pop(query, (_back_off(self._clock), ""))
        back_off.failed()
        self._rejected[query] = back_off, reason[:_MAX_REASON]
        while len(self._rejected) > MAX_PAUSED:
            self._rejected.popitem(last=False)

    def resume(self, query: MetricQuery) -> None:
        """Forget a query that its source answered."""
        self._rejected.pop(query, None)

    def problem(self) -> str:
        """Return how many queries were rejected lately and why the last was, or an empty text."""
        long_ago = self._clock.monotonic() - LONGEST_PAUSE_SECONDS  # such a query is probably gone
        for query in [query for query, (back_off, _) in self._rejected.items() if back_off.until <= long_ago]:
            del self._rejected[query]
        if not self._rejected:
            return ""
        query, (_, reason) = next(reversed(self._rejected.items()))
        number = len(self._rejected)
        are = "is" if number == 1 else "are"
        return f"{counted(number, 'query', 'queries')} {are} rejected, the last about {query}: {reason}"


class RuleHealth:
    """Tracks the health of one rule, and backs off after its source rejected it."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._name = name
        self._reason = ""
        self._back_off = _back_off(clock)
        self.queries = PausedQueries(clock, name)

    def report(self) -> Health:
        """Return the current health."""
        reason = self._reason or self.queries.problem()
        state = State.DISABLED if self.is_paused else State.FAILING if reason else State.OK
        return Health(self._name, state, reason)

    @property
    def is_paused(self) -> bool:
        """Return whether the rule is disabled at the moment."""
        return self._back_off.is_waiting

    @property
    def was_disabled(self) -> bool:
        """Return whether the rule was disabled and did not work since."""
        return self._back_off.seconds > 0

    @property
    def reason(self) -> str:
        """Return the last error, or an empty text after a success."""
        return self._reason

    def disable(self, reason: str) -> None:
        """Disable the rule for a while, because its source rejected the rule itself, whatever is asked."""
        self._back_off.failed()
        if reason != self._reason:
            log.error("%s is disabled for %.0f s: %s", self._name, self._back_off.seconds, reason)
        self._reason = reason

    def record_failure(self, reason: str) -> None:
        """Record a failure that the rule did not cause."""
        if not self._reason:
            log.warning("%s fails: %s", self._name, reason)
        self._reason = reason

    def record_success(self) -> None:
        """Record a success and enable the rule again."""
        if self._reason:
            log.info("%s recovered", self._name)
        self._reason = ""
        self._back_off.succeeded()
