"""Health of sources and rules.

A bad rule is disabled alone. The other rules keep serving.
"""

import logging
from dataclasses import dataclass
from enum import StrEnum

from trimtab.clock import Clock

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 300.0
"""A rejected rule is retried after 15 s; each further rejection doubles the pause, up to 5 minutes."""


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


class RuleHealth:
    """Tracks the health of one rule, and backs off after its source rejected it."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._reason = ""
        self._pause = 0.0
        self._until = 0.0

    def report(self) -> Health:
        """Return the current health."""
        state = State.DISABLED if self.is_paused else State.FAILING if self._reason else State.OK
        return Health(self._name, state, self._reason)

    @property
    def is_paused(self) -> bool:
        """Return whether the rule is disabled at the moment."""
        return self._clock.monotonic() < self._until

    @property
    def reason(self) -> str:
        """Return the last error, or an empty text after a success."""
        return self._reason

    def disable(self, reason: str) -> None:
        """Disable the rule for a while, because its source rejected the query itself."""
        self._pause = min(max(FIRST_PAUSE_SECONDS, self._pause * 2), LONGEST_PAUSE_SECONDS)
        self._until = self._clock.monotonic() + self._pause
        if reason != self._reason:
            log.error("%s is disabled for %.0f s: %s", self._name, self._pause, reason)
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
        self._pause = self._until = 0.0
