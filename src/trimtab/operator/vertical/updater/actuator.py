"""Carries out what an update loop asks for: a resize or an eviction, and what became of it.

Evictions pass three gates that only this side knows: the rate limit, the proof that admission works, and a resize of
the same pod whose outcome is not known (evicting it then might undo what just succeeded).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType, Preconditions
from trimtab.cluster.resource import PODS
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict, Resize
from trimtab.model.core.pod import Pod
from trimtab.operator.vertical.updater.replacement import REFUSED, Obstacle, ReplacementCheck

log = logging.getLogger(__name__)
_NODE_CAPACITY = "NodeCapacity"
_METHOD_NOT_ALLOWED = 405
_UNSURE = (errors.TransportError, errors.ServerError)
"""A write that ends so may have been stored all the same."""
WebhookCheck = Callable[[], Awaitable[str | None]]
"""Says why admission is not proved to work; None if it is."""


class ActionRateLimiter:
    """At most so many actions per second, with a burst; what exceeds it waits its turn."""

    def __init__(self, clock: Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._filled_at = clock.monotonic()

    async def take(self, until: float) -> bool:
        """Wait for the next action's turn; False if it comes only after `until` on the monotonic clock."""
        if self._per_second <= 0:
            return True
        now = self._clock.monotonic()
        gained = (now - self._filled_at) * self._per_second
        self._tokens, self._filled_at = min(self._tokens + gained, float(self._burst)), now
        wait = max((1.0 - self._tokens) / self._per_second, 0.0)
        if now + wait > until:
            return False
        self._tokens -= 1.0
        await self._clock.sleep(wait)
        return True


@dataclass
class Performed:
    """One action with what became of it, for metrics."""

    action: Action
    outcome: ActionResult
    reason: str = ""


@dataclass
class UpdateActuator:
    """Performs the actions of one loop."""

    client: Client
    evictions: ActionRateLimiter
    resizes: ActionRateLimiter
    proof: WebhookCheck
    until: float
    """When the loop should end, on the monotonic clock; what waits for longer is left to the next one."""
    replacement: ReplacementCheck | None = None
    """Asked before each eviction whether the pod would come back; None believes it."""
    done: list[Performed] = field(default_factory=list)
    unproved: str | None = None
    """Why admission was not proved to work, if an eviction had to wait for that."""
    obstacles: list[tuple[Evict, Obstacle]] = field(default_factory=list)
    """Evictions that were not asked for, and why their pods would not come back."""
    replacements: dict[str, str] = field(default_factory=dict)
    """What the server said to each replacement that it was asked about, by pod; empty if it admits it."""
    lost: dict[str, datetime] = field(default_factory=dict)
    """When no answer came to a write that was sent, by pod uid."""
    _is_asked: bool = False
    _unsure: set[str] = field(default_factory=set)

    async def perform(self, action: Action) -> ActionResult:
        """Carry out one action; a lost lease ends the loop by raising."""
        try:
            if self.client.is_dry_run:
                outcome, reason = await self._would(action)
            else:
                outcome, reason = (
                    await self._evict(action) if isinstance(action, Evict) else await self._resize(action)
                )
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            self._unsure.add(action.pod.metadata.uid)
            outcome, reason = ActionResult.FAILED, str(error)
        if self.client.is_dry_run:  # what was not tried did not fail
            return self._note(action, outcome, reason) if outcome is ActionResult.DRY_RUN else outcome
        is_eviction = isinstance(action, Evict)
        # What the API server accepted is not done: the kubelet says later what became of it.
        told = "requested" if outcome is ActionResult.DONE and not is_eviction else outcome.value
        log.info(
            "evict" if is_eviction else "resize",
            extra={"facts": {**_facts(action), "outcome": told, "why": reason}},
        )
        return self._note(action, outcome, reason)

    def _note(self, action: Action, outcome: ActionResult, reason: str) -> ActionResult:
        self.done.append(Performed(action, outcome, reason))
        return outcome

    async def _would(self, action: Action) -> tuple[ActionResult, str]:
        """Say what a live process would do: it evicts no pod that would not come back."""
        if isinstance(action, Evict) and (found := await self._obstacle(action)) is not None:
            return ActionResult.UNREPLACEABLE, found.message
        what = "evict" if isinstance(action, Evict) else "resize"
        log.info("dry run: would %s", what, extra={"facts": _facts(action)})
        return ActionResult.DRY_RUN, "dry run"

    async def _obstacle(self, action: Evict) -> Obstacle | None:
        """Return why a pod would not come back, and take note of it."""
        if self.replacement is None:
            return None
        found = await self.replacement.obstacle(action.pod, action.vpa)
        if found is not None:
            self.obstacles.append((action, found))
        is_refused = found is not None and found.reason == REFUSED
        self.replacements[action.pod.metadata.key] = found.message if found and is_refused else ""
        return found

    async def _resize(self, action: Resize) -> tuple[ActionResult, str]:
        if not await self.resizes.take(self.until):
            return ActionResult.RATE_LIMITED, "the rate limit of resizes is reached"
        meta = action.pod.metadata
        same = Preconditions(uid=meta.uid)
        # First what the user wrote: without it the next resize could not keep the ratio of limits to requests.
        await self._annotate(action, action.plan.annotations_before, same)
        try:
            if action.operations:
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
                return ActionResult.INFEASIBLE, str(error)
            if isinstance(error, errors.Forbidden):
                raise  # a quota or a missing right: the replacement of an evicted pod would meet it too
            return ActionResult.INVALID, str(error)
        except _UNSURE as error:
            return self._unanswered(action, error)
        except errors.ApiError as error:
            if isinstance(error, errors.NotFound) or error.code == _METHOD_NOT_ALLOWED:
                return ActionResult.FAILED, str(error)  # this server cannot resize
            raise
        try:
            await self._annotate(action, action.plan.annotations_after, same)
        except errors.ClusterError as error:
            # Only a note for people: the resize itself is done.
            log.warning("pod %s is resized but not annotated: %s", meta.key, error)
        return ActionResult.DONE, ""

    async def _annotate(
        self, action: Resize, annotations: Mapping[str, str | None], same: Preconditions
    ) -> None:
        """Set annotations, or remove those that are None, by a merge patch: those of others survive."""
        meta = action.pod.metadata
        if annotations:
            body = {"metadata": {"annotations": dict(annotations)}}
            await self.client.patch(PODS, meta.name, meta.namespace, body, preconditions=same)

    async def _evict(self, action: Evict) -> tuple[ActionResult, str]:
        meta = action.pod.metadata
        if meta.uid in self._unsure:
            return ActionResult.FAILED, "whether its resize succeeded is not known"
        if not self._is_asked:
            self._is_asked = True
            self.unproved = await self.proof()
        if self.unproved is not None:
            return ActionResult.FAILED, self.unproved
        if (found := await self._obstacle(action)) is not None:
            return ActionResult.UNREPLACEABLE, found.message
        if not await self.evictions.take(self.until):
            return ActionResult.RATE_LIMITED, "the eviction rate limit is reached"
        try:
            await self.client.evict(meta.name, meta.namespace, preconditions=Preconditions(uid=meta.uid))
        except errors.TooManyRequests as error:
            return ActionResult.REFUSED, str(error)
        except _UNSURE as error:
            return self._unanswered(action, error)
        return ActionResult.DONE, ""

    def _unanswered(self, action: Action, error: errors.ClusterError) -> tuple[ActionResult, str]:
        """Return the outcome of a write that was sent, and of which nobody knows what became of it."""
        self._unsure.add(action.pod.metadata.uid)
        self.lost[action.pod.metadata.uid] = self.client.clock.now()
        return ActionResult.UNKNOWN, str(error)


async def read_live(client: Client, pod: Pod) -> Pod | None:
    """Return a pod as the server has it now; None if it does not exist any more."""
    try:
        return await client.get(PODS, pod.name, pod.metadata.namespace)
    except errors.NotFound:
        return None


def _facts(action: Action) -> dict[str, str]:
    return {"pod": action.pod.metadata.key, "vpa": action.vpa.key, "reason": action.reason}
