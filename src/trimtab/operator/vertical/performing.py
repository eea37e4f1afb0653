"""Carries out what an update loop asks for: a resize or an eviction, and what became of it.

Evictions pass three gates that only this side knows: the rate limit, the proof that admission works, and a resize of
the same pod whose outcome is not known (evicting it then might undo what just succeeded).
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.patching import PatchType, Preconditions
from trimtab.cluster.resources import PODS
from trimtab.decide.vertical.actions import Action, Evict, Outcome, Resize

log = logging.getLogger(__name__)
_NODE_CAPACITY = "NodeCapacity"
_METHOD_NOT_ALLOWED = 405
Proof = Callable[[], Awaitable[str | None]]
"""Says why admission is not proved to work; None if it is."""


class RateLimit:
    """At most so many evictions per second, with a burst; what exceeds it waits for a later loop."""

    def __init__(self, clock: Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._filled_at = clock.monotonic()

    def take(self) -> bool:
        """Return whether one more eviction may happen now."""
        if self._per_second <= 0:
            return True
        now = self._clock.monotonic()
        gained = (now - self._filled_at) * self._per_second
        self._tokens, self._filled_at = min(self._tokens + gained, float(self._burst)), now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


@dataclass
class Performed:
    """One action with what became of it, for metrics."""

    action: Action
    outcome: Outcome
    reason: str = ""


@dataclass
class Performer:
    """Performs the actions of one loop."""

    client: Client
    rate: RateLimit
    proof: Proof
    dry_run: bool = False
    done: list[Performed] = field(default_factory=list)
    unproved: str | None = None
    """Why admission was not proved to work, if an eviction had to wait for that."""
    _is_asked: bool = False
    _unsure: set[str] = field(default_factory=set)

    async def perform(self, action: Action) -> Outcome:
        """Carry out one action; a lost lease ends the loop by raising."""
        if self.dry_run:
            log.info("dry run: nothing is done", extra={"facts": _facts(action)})
            return self._note(action, Outcome.DONE, "dry run")
        try:
            outcome, reason = (
                await self._evict(action) if isinstance(action, Evict) else await self._resize(action)
            )
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            self._unsure.add(action.pod.metadata.uid)
            outcome, reason = Outcome.FAILED, str(error)
        log.info(
            "evict" if isinstance(action, Evict) else "resize",
            extra={"facts": {**_facts(action), "outcome": outcome.value, "why": reason}},
        )
        return self._note(action, outcome, reason)

    def _note(self, action: Action, outcome: Outcome, reason: str) -> Outcome:
        self.done.append(Performed(action, outcome, reason))
        return outcome

    async def _resize(self, action: Resize) -> tuple[Outcome, str]:
        meta = action.pod.metadata
        same = Preconditions(uid=meta.uid)
        try:
            await self.client.patch(
                PODS,
                meta.name,
                meta.namespace,
                list(action.operations),
                how=PatchType.JSON,
                preconditions=same,
                subresource="resize",
            )
        except (errors.Invalid, errors.Forbidden) as error:
            if any(cause.reason == _NODE_CAPACITY for cause in error.details.causes):
                return Outcome.INFEASIBLE, str(error)
            if isinstance(error, errors.Forbidden):
                raise  # a quota or a missing right: the replacement of an evicted pod would meet it too
            return Outcome.FAILED, str(error)
        except errors.ApiError as error:
            if isinstance(error, errors.NotFound) or error.code == _METHOD_NOT_ALLOWED:
                return Outcome.FAILED, str(error)  # this server cannot resize
            raise
        await self._annotate(action, same)
        return Outcome.DONE, ""

    async def _annotate(self, action: Resize, same: Preconditions) -> None:
        meta = action.pod.metadata
        try:
            await self.client.patch(
                PODS,
                meta.name,
                meta.namespace,
                list(action.annotations),
                how=PatchType.JSON,
                preconditions=same,
            )
        except errors.ClusterError as error:
            # Only a note for people: the resize itself is done.
            log.warning("pod %s is resized but not annotated: %s", meta.key, error)

    async def _evict(self, action: Evict) -> tuple[Outcome, str]:
        meta = action.pod.metadata
        if meta.uid in self._unsure:
            return Outcome.FAILED, "whether its resize succeeded is not known"
        if not self._is_asked:
            self._is_asked = True
            self.unproved = await self.proof()
        if self.unproved is not None:
            return Outcome.FAILED, self.unproved
        if not self.rate.take():
            return Outcome.FAILED, "the eviction rate limit is reached"
        try:
            await self.client.evict(meta.name, meta.namespace, preconditions=Preconditions(uid=meta.uid))
        except errors.TooManyRequests as error:
            return Outcome.REFUSED, str(error)
        return Outcome.DONE, ""


def _facts(action: Action) -> dict[str, str]:
    return {"pod": action.pod.metadata.key, "vpa": action.vpa.key, "reason": action.reason}
