"""One Lease: how it is created, taken, renewed and released, and until when its holder may write.

The times are client-go's: a Lease is renewed every 2 s, used until 10 s after its last renewal was sent, and taken 15 s
after its last renewal was seen. Every write has the resourceVersion that was seen, so that one of two candidates succeeds.
"""

import logging
import uuid
from asyncio import timeout
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from math import isfinite
from typing import Final, TypeVar

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.epoch import MOST_CLOCKS, ClockReading, Epoch, OwnClock, clock_name
from trimtab.cluster.resource import LEASES, Json, Resource
from trimtab.model.core.objects import Lease
from trimtab.model.json import wire
from trimtab.model.times import format_micro_time

log = logging.getLogger(__name__)
T = TypeVar("T")

_UNTYPED = LEASES.untyped()
_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", Json)
_ACCOUNT: Final = "system:serviceaccount:"
_RELEASE_SECONDS: Final = 2.0
_REPEAT_SECONDS: Final = 300.0
_MOST_FAILURES: Final = 16

RELEASED_BY = "autoscaling.trimtab.dev/released-by"
"""The annotation of a released Lease that names the clock of its last renewTime."""

CLOCK_SET = "autoscaling.trimtab.dev/clock-set"
"""The annotation of a Lease with the seconds by which the clock of its renewTime was set."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The times of a Lease, in seconds."""

    duration: float = 15.0
    """How long candidates wait after the last renewal that they saw."""
    renew_deadline: float = 10.0
    """How long a holder writes after its last renewal was sent. The margin to `duration` is for slow writes."""
    retry: float = 2.0
    """The period of renewals and of a candidate's reads."""

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry * 1.2 > 0:
            raise ValueError(f"{self}: need duration > renew_deadline > 1.2 * retry > 0")


class Written(Enum):
    """The result of a write."""

    RENEWED = "renewed"
    """The Lease was held all the time."""
    TAKEN = "taken"
    """It is held from now on. Meanwhile others may have been entitled to it."""
    REFUSED = "refused"
    """Another version is stored. It has to be read."""
    UNKNOWN = "unknown"
    """No answer came. The write may have arrived."""


def unique_identity(host: str) -> str:
    """Return a unique name for this process."""
    return f"{host}_{uuid.uuid4()}"


class LeaseLock:
    """One Lease as this replica last saw it, and until when this replica may use it."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        times: LeaseTimes,
        annotations: Mapping[str, str],
    ) -> None:
        self.name = name
        self.holder = ""
        self.transitions = 0
        self.is_confirmed = False
        """Whether a look after it was taken saw no replica with another N. Only then writes are sent."""
        self.epoch = Epoch()
        self._client = client
        self._clock = client.clock
        self._namespace = namespace
        self._identity = identity
        self._times = times
        self._failures = FailureLog(self._clock)
        self._annotations = annotations
        self._seen: Json = {}
        self._exists = False
        self._changed_at = 0.0
        self._looked_at: float | None = None
        self._duration = times.duration
        self._renewals: deque[str] = deque(maxlen=8)
        self._until: float | None = None
        self._own_clock = OwnClock(identity, self._clock.now().timestamp(), self._clock.monotonic())
        self._last_clock = ""
        self._clocks: dict[str, ClockReading] = {}

    @property
    def is_ours(self) -> bool:
        """Return whether this process wrote the Lease. The holder's name alone is not a proof."""
        return self.holder == self._identity and self._seen.get("spec", {}).get("renewTime") in self._renewals

    @property
    def is_taken(self) -> bool:
        """Return whether another process may use the Lease, also if it vanished."""
        is_live = self._clock.monotonic() - self._changed_at < self._duration
        return bool(self.holder) and not self.is_ours and is_live

    def may_write(self) -> bool:
        """Return whether this process certainly holds the Lease."""
        return self.time_left() > 0

    def time_left(self) -> float:
        """Return for how many seconds this process certainly holds the Lease."""
        return 0.0 if self._until is None else max(self._until - self._clock.monotonic(), 0.0)

    def observe(self, lease: Json | None) -> None:
        """Process the Lease from a list. A change starts the wait again, whatever times it contains."""
        self._exists = lease is not None
        if lease is None:
            self._until = None
            return
        now = self._clock.monotonic()
        if lease.get("spec") != self._seen.get("spec"):
            self._changed_at = now
            self._read_clock(lease, now)
        self._seen, self._looked_at = lease, now
        spec = wire.convert(lease, Lease).spec
        self.holder, self.transitions = spec.holder_identity, spec.lease_transitions
        self._duration = spec.lease_duration_seconds or self._times.duration
        if not self.is_ours:
            self._until = None

    async def write(self) -> Written:
        """Take the Lease, or renew it.

        It was held all the time if the answer arrived before others may have taken it, and if it was ours.
        """
        sent_at, left = self._clock.monotonic(), self.time_left()
        try:
            async with timeout(min(left or self._times.renew_deadline, self._times.renew_deadline / 2)):
                await self._send(is_take=not left)
        except (errors.Conflict, errors.NotFound) as error:
            if isinstance(error, errors.NotFound) and not self._exists:
                advice = f"nobody leads until there is one: kubectl create namespace {self._namespace}"
                self._failures.failed(f"lease {self._namespace}/{self.name}: {error}; {advice}")
            return Written.REFUSED
        except (errors.ClusterError, TimeoutError) as error:
            self._failures.failed(f"lease {self._namespace}/{self.name}: {str(error) or 'no answer in time'}")
            return Written.UNKNOWN
        self._failures.succeeded()
        is_in_time = self.may_write()
        self._until = sent_at + self._times.renew_deadline
        if is_in_time:
            return Written.RENEWED
        self.is_confirmed = False
        if left:
            self.epoch = self._next_epoch()
        return Written.TAKEN

    async def release(self) -> None:
        """Stop writing, and let the next holder take over without waiting."""
        was_held, self._until = self.may_write(), None
        if not was_held:
            return
        try:
            async with timeout(_RELEASE_SECONDS):
                try:
                    await self._give_up()
                except errors.Conflict:  # a renewal was cut off after the server took it
                    found: Json = await self._client.get(_UNTYPED, self.name, self._namespace)
                    self.observe(found)
                    if self.is_ours:
                        await self._give_up()
        except (errors.ClusterError, TimeoutError) as error:
            log.warning("lease %s/%s is not released, it will run out: %s", self._namespace, self.name, error)

    async def _give_up(self) -> None:
        now = self._clock.now()
        nobody = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": format_micro_time(now)}
        metadata = self._signed(self._seen.get("metadata", {}), now)
        metadata = {
            **metadata,
            "annotations": {**metadata.get("annotations", {}), RELEASED_BY: self._identity},
        }
        body = {**self._seen, "metadata": metadata, "spec": {**self._seen.get("spec", {}), **nobody}}
        written: Json = await self._client.update(_UNTYPED, self.name, self._namespace, body)
        self.observe(written)

    async def _send(self, *, is_take: bool) -> None:
        now = self._clock.now()
        if is_take:
            self.epoch = self._next_epoch()
        if self._exists:
            body = {
                **self._seen,
                "metadata": self._signed(self._seen.get("metadata", {}), now),
                "spec": {**self._seen.get("spec", {}), **self._record(now)},
            }
            written: Json = await self._client.update(_UNTYPED, self.name, self._namespace, body)
            self.observe(written)
            return
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": self._signed({"name": self.name, "namespace": self._namespace}, now),
            "spec": self._record(now),
        }
        written = await create_lease(self._client, _UNTYPED, body, self._namespace)
        self.observe(written)

    def _record(self, moment: datetime) -> Json:
        now = format_micro_time(moment)
        self._renewals.append(now)
        record: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._times.duration),
            "renewTime": now,
        }
        if not (self._exists and self.is_ours):
            record["acquireTime"] = now
            record["leaseTransitions"] = self.transitions + (1 if self._exists else 0)
        return record

    def _signed(self, metadata: Json, moment: datetime) -> Json:
        """Return the metadata with the holder's annotations. They change together with the holder."""
        annotations = {**(metadata.get("annotations") or {}), **self._annotations}
        annotations.pop(CLOCK_SET, None)
        if seconds := self._own_clock.seconds_set(moment.timestamp(), self._clock.monotonic()):
            annotations[CLOCK_SET] = f"{seconds:.3f}"
        if annotations or metadata.get("annotations"):
            return {**metadata, "annotations": annotations}
        return metadata

    def _next_epoch(self) -> Epoch:
        renewed = wire.convert(self._seen, Lease).spec.renew_time if self._exists else None
        at = None if renewed is None else renewed.timestamp()
        return Epoch(self._last_clock, at, dict(self._clocks), self._own_clock)

    def _read_clock(self, lease: Json, now: float) -> None:
        """Update the estimate of the holder's clock from its renewal or release."""
        found = wire.convert(lease, Lease)
        holder = found.spec.holder_identity or found.metadata.annotations.get(RELEASED_BY, "")
        name, seconds_set = clock_name(holder), _seconds_set(found)
        self._last_clock = clock_name(holder, seconds_set)
        if found.spec.renew_time is None:
            return
        said = found.spec.renew_time.timestamp()
        reading = ClockReading.of_renewal(said - seconds_set, self._looked_at, now)
        known = self._clocks.pop(name, None)
        self._clocks[name] = reading if known is None else known.and_then(reading)
        while len(self._clocks) > MOST_CLOCKS:
            del self._clocks[next(iter(self._clocks))]


def _seconds_set(lease: Lease) -> float:
    try:
        seconds = float(lease.metadata.annotations.get(CLOCK_SET, 0))
    except ValueError:
        return 0.0
    return seconds if isfinite(seconds) else 0.0


async def create_lease(client: Client, leases: Resource[T], body: Json, namespace: str) -> T:
    """Create a Lease, owned by the account of this process if the account is in the same namespace.

    The garbage collector then deletes the Lease after the account, together with the installation.
    """
    if owners := await _owners(client, namespace):
        owned = {**body, "metadata": {**body["metadata"], "ownerReferences": owners}}
        try:
            return await client.create(leases, owned, namespace)
        except errors.Forbidden:
            # OwnerReferencesPermissionEnforcement wants the right to delete Leases, which no account has.
            pass
    return await client.create(leases, body, namespace)


async def _owners(client: Client, namespace: str) -> list[Json]:
    """Return a reference to the account that the API server sees. A token file may be of another cluster."""
    try:
        review = await client.create(_REVIEWS, {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind})
    except errors.ClusterError:
        return []
    user = (review.get("status") or {}).get("userInfo") or {}
    place, _, name = str(user.get("username", "")).removeprefix(_ACCOUNT).partition(":")
    if not str(user.get("username", "")).startswith(_ACCOUNT) or place != namespace or not user.get("uid"):
        return []
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "uid": user["uid"]}]


class FailureLog:
    """Logs each failure once, and again every five minutes while it lasts. A success ends it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged_at: dict[str, float] = {}

    def failed(self, message: str) -> None:
        """Log a failure as a warning, unless the same was logged less than five minutes ago."""
        now = self._clock.monotonic()
        before = self._logged_at.get(message)
        if before is not None and now - before < _REPEAT_SECONDS:
            return
        self._logged_at.pop(message, None)
        self._logged_at[message] = now
        while len(self._logged_at) > _MOST_FAILURES:
            del self._logged_at[next(iter(self._logged_at))]
        log.warning("%s", message)

    def succeeded(self) -> None:
        """Log every failure from now on as a new one."""
        self._logged_at.clear()
