"""How sources and rules are: one bad rule is out of service by itself and named, the rest goes on."""

import logging
from dataclasses import dataclass
from enum import StrEnum

from trimtab.clock import Clock

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 300.0
"""A rule that its source refuses is tried again after 15 s, then twice as long each time, at most every 5 minutes."""


class State(StrEnum):
    """What can be said of a source or a rule."""

    OK = "ok"
    FAILING = "failing"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Health:
    """The state of one source or rule, with the reason where it is not ok."""

    name: str
    state: State = State.OK
    reason: str = ""


class RuleHealth:
    """Whether one rule is in service; it takes itself out after its source refused it, for longer each time."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._reason = ""
        self._pause = 0.0
        self._until = 0.0

    def report(self) -> Health:
        """Return the state now."""
        state = State.DISABLED if self.is_paused else State.FAILING if self._reason else State.OK
        return Health(self._name, state, self._reason)

    @property
    def is_paused(self) -> bool:
        """Return whether the rule is out of service at the moment."""
        return self._clock.monotonic() < self._until

    @property
    def reason(self) -> str:
        """Return why, or nothing if all is well."""
        return self._reason

    def refused(self, reason: str) -> None:
        """Take the rule out of service: what it asks is wrong, and asking again soon will not help."""
        self._pause = min(max(FIRST_PAUSE_SECONDS, self._pause * 2), LONGEST_PAUSE_SECONDS)
        self._until = self._clock.monotonic() + self._pause
        if reason != self._reason:
            log.error("%s is out of service, tried again in %.0f s: %s", self._name, self._pause, reason)
        self._reason = reason

    def failed(self, reason: str) -> None:
        """Take note of a failure that is not the rule's fault."""
        if not self._reason:
            log.warning("%s fails: %s", self._name, reason)
        self._reason = reason

    def worked(self) -> None:
        """Take note that the rule gave an answer."""
        if self._reason:
            log.info("%s works again", self._name)
        self._reason = ""
        self._pause = self._until = 0.0
