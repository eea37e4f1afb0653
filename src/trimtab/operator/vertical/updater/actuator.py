"""Performs the actions of an update loop: resizes and evictions.

An eviction waits for the rate limit and for the webhook check. A pod whose resize got no response is not evicted in
the same loop, because the resize may have succeeded.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType, Preconditions
from trimtab.cluster.resource import PODS
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict, Resize
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.model.author import Author
from trimtab.model.core.pod import Pod
from trimtab.model.status import Status
from trimtab.operator.vertical.updater.replacement import REFUSED, Obstacle, ReplacementCheck
from trimtab.pacing import TokenBucket

log = logging.getLogger(__name__)
_NODE_CAPACITY = "NodeCapacity"
_Write = Callable[[Resize, Preconditions], Awaitable[Pod | None]]
"""Writes a pod and returns it as written, or None if there is nothing to write."""
_MAX_WRITES = 5
"""How often a write is sent to a pod that others write at the same time."""
_METHOD_NOT_ALLOWED = 405
_UNSURE = (errors.TransportError, errors.ServerError)
"""Errors after which a write may have been stored or not."""
WebhookCheck = Callable[[], Awaitable[str | None]]
"""Returns why the admission webhook may not work; None if it works."""


class ActionRateLimiter:
    """The pace of the actions of one kind."""

    def __init__(self, clock: Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._tokens = TokenBucket(clock, 1 / per_second, max(burst, 1)) if per_second > 0 else None

    async def take(self, until: float) -> bool:
        """Wait for a token, and return whether one is free before `until` on the monotonic clock."""
        if self._tokens is None:
            return True
        wait = self._tokens.take()
        if self._clock.monotonic() + wait > until:
            self._tokens.give_back()
            return False
        await self._clock.sleep(wait)
        return True


@dataclass
class Performed:
    """An action with its outcome, for metrics."""

    action: Action
    outcome: ActionResult


@dataclass
class UpdateActuator:
    """Performs the actions of one loop."""

    client: Client
    evictions: ActionRateLimiter
    resizes: ActionRateLimiter
    webhook_check: WebhookCheck
    until: float
    """When the loop ends, on the monotonic clock. Actions that would wait longer are left to the next loop."""
    author: Author = field(default_factory=Author)
    """The replica that performs the actions, for log lines."""
    replacement: ReplacementCheck | None = None
    """Runs before each eviction, if set."""
    done: list[Performed] = field(default_factory=list)
    webhook_problem: str | None = None
    """Why the webhook check failed, if an eviction needed it."""
    obstacles: list[tuple[Evict, Obstacle]] = field(default_factory=list)
    """Evictions that were skipped because the replacement check failed."""
    replacements: dict[str, str] = field(default_factory=dict)
    """The server's refusal of each checked replacement, by pod, or an empty string if it is admitted."""
    lost: dict[str, datetime] = field(default_factory=dict)
    """When a write got no response, by pod uid."""
    _is_webhook_checked: bool = False
    _unsure: set[str] = field(default_factory=set)

    async def perform(self, action: Action) -> ActionResult:
        """Perform one action, or raise Fenced when the lease is lost."""
        try:
            if self.client.is_dry_run:
                outcome, reason = await self._would(action)
            else:
                outcome, reason = (
                    await self._evict(action) if isinstance(action, Evict) else await self._resize(action)
                )
        except errors.Fenced:
            raise
        except errors.Conflict as error:
            # The pod changed since the decision, so nothing was done. The next loop decides again.
            outcome, reason = ActionResult.FAILED, str(error)
        except errors.ClusterError as error:
            self._unsure.add(action.pod.metadata.uid)
            outcome, reason = ActionResult.FAILED, str(error)
        if self.client.is_dry_run:  # a dry run has no failures
            if outcome is ActionResult.DRY_RUN:
                self.done.append(Performed(action, outcome))
            return outcome
        is_eviction = isinstance(action, Evict)
        # The API server only accepts a resize; the kubelet reports its outcome later.
        logged = "requested" if outcome is ActionResult.DONE and not is_eviction else outcome.value
        log.info(
            "evict" if is_eviction else "resize",
            extra={"facts": {**_facts(action), "outcome": logged, "why": reason, **self._written_by(action)}},
        )
        self.done.append(Performed(action, outcome))
        return outcome

    def _written_by(self, action: Action) -> dict[str, str | int]:
        version = action.pod.metadata.resource_version
        return msgspec.structs.replace(self.author, base_version=version).facts

    async def _would(self, action: Action) -> tuple[ActionResult, str]:
        """Log what a live process would do."""
        if isinstance(action, Evict) and (obstacle := await self._obstacle(action)) is not None:
            return ActionResult.UNREPLACEABLE, obstacle.message
        what = "evict" if isinstance(action, Evict) else "resize"
        log.info("dry run: would %s", what, extra={"facts": _facts(action)})
        return ActionResult.DRY_RUN, "dry run"

    async def _obstacle(self, action: Evict) -> Obstacle | None:
        """Return and record why a pod would not come back."""
        if self.replacement is None:
            return None
        obstacle = await self.replacement.obstacle(action.pod, action.vpa)
        if obstacle is not None:
            self.obstacles.append((action, obstacle))
        is_refused = obstacle is not None and obstacle.reason == REFUSED
        self.replacements[action.pod.metadata.key] = obstacle.message if obstacle and is_refused else ""
        return obstacle

    async def _resize(self, action: Resize) -> tuple[ActionResult, str]:
        if not await self.resizes.take(self.until):
            return ActionResult.RATE_LIMITED, "the rate limit of resizes is reached"
        # The originals first: without them the next resize could not keep the ratio of limits to requests.
        known = await self._send(action, self._annotate_before, action.pod)
        try:
            known = await self._send(action, self._request_resize, known)
        except (errors.Invalid, errors.Forbidden) as error:
            if any(cause.reason == _NODE_CAPACITY for cause in error.details.causes):
                return ActionResult.INFEASIBLE, str(error)
            if isinstance(error, errors.Forbidden):
                raise  # a quota or a missing right would stop the replacement of an evicted pod too
            return ActionResult.INVALID, str(error)
        except _UNSURE as error:
            return self._unanswered(action, error)
        except errors.ApiError as error:
            if isinstance(error, errors.NotFound) or error.code == _METHOD_NOT_ALLOWED:
                return ActionResult.FAILED, str(error)  # this server cannot resize
            raise
        try:
            await self._send(action, self._annotate_after, known)
        except errors.ClusterError as error:
            # Only a note for users: the resize itself is done.
            log.warning("pod %s is resized but not annotated: %s", action.pod.metadata.key, error)
        return ActionResult.DONE, ""

    async def _send(self, action: Resize, write: _Write, known: Pod) -> Pod:
        """Send a write to the pod as it was decided on or last written, and return it as written.

        The kubelet and others write pods all the time, and report a resize at once. A conflict therefore reads the pod
        again, and the write is repeated unless the spec changed.
        """
        for _ in range(_MAX_WRITES - 1):
            try:
                return await write(action, _same(known)) or known
            except errors.Conflict:
                known = await self._unless_resized(known)
        return await write(action, _same(known)) or known

    async def _annotate_before(self, action: Resize, same: Preconditions) -> Pod | None:
        return await self._annotate(action, action.plan.annotations_before, same)

    async def _annotate_after(self, action: Resize, same: Preconditions) -> Pod | None:
        return await self._annotate(action, action.plan.annotations_after, same)

    async def _request_resize(self, action: Resize, same: Preconditions) -> Pod | None:
        meta = action.pod.metadata
        if not action.operations:
            return None
        return await self.client.patch(
            PODS,
            meta.name,
            meta.namespace,
            list(action.operations),
            how=PatchType.JSON,
            preconditions=same,
            subresource="resize",
        )

    async def _unless_resized(self, known: Pod) -> Pod:
        """Return the pod as it is now. Raise Conflict if more changed than its status and metadata."""
        meta = known.metadata
        now = await self.client.get(PODS, meta.name, meta.namespace)
        if now.metadata.uid != meta.uid or now.spec != known.spec:
            status = Status(message="the pod changed since the decision", code=409, reason="Conflict")
            raise errors.Conflict(f"resizing pod {meta.key}", status)
        return now

    async def _annotate(
        self, action: Resize, annotations: Mapping[str, str | None], same: Preconditions
    ) -> Pod | None:
        """Set annotations, or remove those that are None, and keep all others."""
        meta = action.pod.metadata
        if not annotations:
            return None
        body = {"metadata": {"annotations": dict(annotations)}}
        return await self.client.patch(PODS, meta.name, meta.namespace, body, preconditions=same)

    async def _evict(self, action: Evict) -> tuple[ActionResult, str]:
        meta = action.pod.metadata
        if meta.uid in self._unsure:
            return ActionResult.FAILED, "whether its resize succeeded is not known"
        if not self._is_webhook_checked:
            self._is_webhook_checked = True
            self.webhook_problem = await self.webhook_check()
        if self.webhook_problem is not None:
            return ActionResult.FAILED, self.webhook_problem
        if (obstacle := await self._obstacle(action)) is not None:
            return ActionResult.UNREPLACEABLE, obstacle.message
        if not await self.evictions.take(self.until):
            return ActionResult.RATE_LIMITED, "the eviction rate limit is reached"
        try:
            await self.client.evict(meta.name, meta.namespace, preconditions=_same(action.pod))
        except errors.TooManyRequests as error:
            return ActionResult.REFUSED, str(error)
        except _UNSURE as error:
            return self._unanswered(action, error)
        return ActionResult.DONE, ""

    def _unanswered(self, action: Action, error: errors.ClusterError) -> tuple[ActionResult, str]:
        self._unsure.add(action.pod.metadata.uid)
        self.lost[action.pod.metadata.uid] = self.client.clock.now()
        return ActionResult.UNKNOWN, str(error)


async def read_live(client: Client, pod: Pod) -> Pod | None:
    """Return a pod from the API server, or None if it was deleted."""
    try:
        return await client.get(PODS, pod.name, pod.metadata.namespace)
    except errors.NotFound:
        return None


async def write_refusal_notes(client: Client, notes: Iterable[tuple[Pod, str | None]]) -> None:
    """Set the annotation of each pod, or remove it where the note is None.

    A failed write is repeated by the next loop.
    """
    for pod, note in notes:
        meta = pod.metadata
        body = {"metadata": {"annotations": {REFUSED_ANNOTATION: note}}}
        try:
            await client.patch(
                PODS, meta.name, meta.namespace, body, preconditions=Preconditions(uid=meta.uid)
            )
        except (errors.NotFound, errors.Conflict):
            continue  # deleted, or replaced by a pod of the same name
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            log.warning("pod %s: its refused replacement is not noted: %s", meta.key, error)


def _same(pod: Pod) -> Preconditions:
    """Return the preconditions of a write to a pod that did not change."""
    return Preconditions(pod.metadata.uid, pod.metadata.resource_version or None)


def _facts(action: Action) -> dict[str, str]:
    return {"pod": action.pod.metadata.key, "vpa": action.vpa.key, "reason": action.reason}
