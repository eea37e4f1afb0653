"""Leader election by a Lease, and the fence that stops writing the moment the lease may be lost.

The numbers are client-go's: a lease of 15 s, renewed every 2 s, given up when 10 s passed since the last renewal.
client-go calls its election "not fencing"; ours is: `may_write` compares the monotonic clock with the moment before
the last successful renewal was sent, so that a process that was stopped, or whose event loop stood still, finds the
door closed before its first write (faults F25, F26, F28). Whoever takes over waits the full 15 s.
"""

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite

from trimtab.cluster import errors
from trimtab.cluster.client import Client, retry_on_conflict
from trimtab.cluster.leases.epoch import (
    MOST_CLOCKS,
    ClockReading,
    Epoch,
    OwnClock,
    clock_name,
)
from trimtab.cluster.resource import LEASES, Json
from trimtab.model.core.objects import Lease
from trimtab.model.json import wire
from trimtab.model.times import format_micro_time

log = logging.getLogger(__name__)
_UNTYPED = LEASES.untyped()
RELEASED_BY = "autoscaling.trimtab.dev/released-by"
"""The annotation of a released Lease that says whose clock its last renewTime is by."""

CLOCK_SET = "autoscaling.trimtab.dev/clock-set"
"""The annotation of a Lease that says by how many seconds the clock of its renewTime was set while its process ran."""

_JITTER = 1.2
_RELEASE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long things take, in seconds."""

    duration: float = 15.0
    """How long others wait after the last renewal that they saw before they take over."""
    renew_deadline: float = 10.0
    """How long after its last renewal a leader still writes; shorter than `duration` by the margin for slow writes."""
    retry: float = 2.0
    """How often a leader renews and a candidate looks."""

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry * _JITTER > 0:
            raise ValueError(f"{self}: need duration > renew_deadline > {_JITTER} * retry > 0")


def unique_identity(host: str) -> str:
    """Return a name for this process that no other has, even on the same host."""
    return f"{host}_{uuid.uuid4()}"


class LeaderElector:
    """Tries to hold one Lease; `run` keeps trying until cancelled and then releases it.

    It is a `Fence`: hand it to `Client.fenced`. Give it a client of its own, so that its renewals neither wait behind
    the turns of other requests nor are fenced themselves.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        times: LeaseTimes | None = None,
        annotations: Mapping[str, str] | None = None,
        on_change: Callable[[bool], None] | None = None,
    ) -> None:
        self.holder = ""
        self.transitions = 0
        self.epoch = Epoch()
        """The time in which we hold the lease, or last held it."""
        self._client = client
        self._clock = client.clock
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._times = times or LeaseTimes()
        self._annotations = annotations or {}
        self._on_change = on_change
        self._seen: Json = {}
        self._seen_at = 0.0
        self._looked_at: float | None = None
        self._own_clock = OwnClock(identity, self._clock.now().timestamp(), self._clock.monotonic())
        self._last_clock = ""
        self._clocks: dict[str, ClockReading] = {}
        self._renewals: deque[str] = deque(maxlen=8)
        self._write_until: float | None = None

    @property
    def is_leader(self) -> bool:
        """Return whether we hold the lease, as far as we know; before a write, `may_write` is what counts."""
        return self._write_until is not None

    def may_write(self) -> bool:
        """Return whether we surely still hold the lease."""
        return self.time_left() > 0

    def time_left(self) -> float:
        """Return for how many seconds we surely still hold the lease; 0 if we do not."""
        if self._write_until is None:
            return 0.0
        return max(self._write_until - self._clock.monotonic(), 0.0)

    async def run(self) -> None:
        """Take part in the election until cancelled; release the lease on the way out."""
        try:
            while True:
                await self.step()
                # Candidates look at uneven times, so that two of them rarely meet in one write.
                spread = (_JITTER - 1.0) * self._client.sender.random.random()
                pause = (
                    min(self._times.retry, self.time_left())
                    if self.is_leader
                    else self._times.retry * (1.0 + spread)
                )
                await self._clock.sleep(pause)
        finally:
            await self.release()

    async def release(self) -> None:
        """Stop writing, and let the next one take over without waiting."""
        if not self.may_write():
            self._settle(None)
            return
        self._settle(None)
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await retry_on_conflict(self._give_up, tries=2)
        except (errors.ClusterError, TimeoutError) as error:
            log.warning(
                "lease %s/%s is not released, it will run out: %s", self._namespace, self._name, error
            )

    async def _give_up(self) -> None:
        # Read first: a renewal may have been cut off after the server took it.
        self._observe(await self._client.get(_UNTYPED, self._name, self._namespace))
        if not self._is_ours():
            return
        now = self._clock.now()
        nobody = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": format_micro_time(now)}
        metadata = self._signed(self._seen.get("metadata", {}), now)
        annotations = {**metadata.get("annotations", {}), RELEASED_BY: self._identity}
        body = {
            **self._seen,
            "metadata": {**metadata, "annotations": annotations},
            "spec": {**self._seen.get("spec", {}), **nobody},
        }
        await self._client.update(_UNTYPED, self._name, self._namespace, body)

    @property
    def is_taken(self) -> bool:
        """Return whether somebody else holds the lease, as far as can be seen."""
        return self._is_held_by_another()

    def observe(self, lease: Json | None) -> None:
        """Take in the lease as a list shows it; of the one that we hold, our own renewals tell."""
        if lease is not None and not self.is_leader:
            self._observe(lease)

    async def step(self) -> None:
        """Try once to take the lease, or renew it."""
        if not self.may_write():
            self._settle(None)
        sent_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(
                min(self.time_left() or self._times.renew_deadline, self._times.renew_deadline / 2)
            ):
                held: bool | None = await self._acquire_or_renew()
        except (errors.ClusterError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            if isinstance(error, errors.NotFound):  # a lease that is missing is made, so its namespace is
                why += f"; nobody leads until there is one: kubectl create namespace {self._namespace}"
            log.warning("lease %s/%s: %s", self._namespace, self._name, why)
            held = None
        if held:
            self._settle(sent_at + self._times.renew_deadline)
        elif held is False or not self.may_write():
            # Another holds it, or nobody could tell us for too long.
            self._settle(None)

    async def _acquire_or_renew(self) -> bool:
        if self.is_leader:
            try:
                return await self._write(self._seen)
            except (errors.Conflict, errors.NotFound) as error:
                log.info("lease %s/%s changed under us: %s", self._namespace, self._name, error)
        try:
            current = await self._client.get(_UNTYPED, self._name, self._namespace)
        except errors.NotFound:
            return await self._create()
        self._observe(current)
        if self._is_held_by_another():
            return False
        if not self._is_ours():
            # Before the write: should its answer get lost, the next look finds our own renewal, and the epoch goes on.
            self.epoch = self._next_epoch(_renewed(current))
        return await self._write(current)

    def _next_epoch(self, renewed: float | None) -> Epoch:
        return Epoch(self._last_clock, renewed, dict(self._clocks), self._own_clock)

    async def _create(self) -> bool:
        # Someone deleted the lease of a leader who may not know yet: give it the time to notice.
        if self._is_held_by_another():
            return False
        self._seen = {}
        now = self._clock.now()
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": self._signed({"name": self._name, "namespace": self._namespace}, now),
            "spec": self._record(now),
        }
        self.epoch = self._next_epoch(None)
        self._observe(await self._client.create(_UNTYPED, body, self._namespace))
        return True

    async def _write(self, current: Json) -> bool:
        """Renew or take over; the resourceVersion goes along, so that of two candidates one gets through."""
        now = self._clock.now()
        body = {
            **current,
            "metadata": self._signed(current.get("metadata", {}), now),
            "spec": {**current.get("spec", {}), **self._record(now)},
        }
        self._observe(await self._client.update(_UNTYPED, self._name, self._namespace, body))
        return True

    def _signed(self, metadata: Json, moment: datetime) -> Json:
        """Return the metadata with what the holder says of itself; it changes hands together with the lease."""
        annotations = {**(metadata.get("annotations") or {}), **self._annotations}
        annotations.pop(CLOCK_SET, None)
        if seconds := self._own_clock.seconds_set(moment.timestamp(), self._clock.monotonic()):
            annotations[CLOCK_SET] = f"{seconds:.3f}"
        if annotations or metadata.get("annotations"):
            return {**metadata, "annotations": annotations}
        return metadata

    def _record(self, moment: datetime) -> Json:
        now = format_micro_time(moment)
        self._renewals.append(now)
        record: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._times.duration),
            "renewTime": now,
        }
        lease = wire.convert(self._seen, Lease)
        if not self._is_ours():
            record["acquireTime"] = now
            record["leaseTransitions"] = lease.spec.lease_transitions + (1 if self._seen else 0)
        return record

    def _observe(self, lease: Json) -> None:
        """Take in what the server holds; a change starts the wait anew, whatever times are written in it."""
        now = self._clock.monotonic()
        if lease.get("spec") != self._seen.get("spec"):
            self._seen_at = now
            self._read_clock(lease, now)
        self._seen, self._looked_at = lease, now
        spec = wire.convert(lease, Lease).spec
        self.holder = spec.holder_identity
        self.transitions = spec.lease_transitions

    def _read_clock(self, lease: Json, now: float) -> None:
        """Take in what a renewal, or the release by the last holder, shows of that holder's clock."""
        found = wire.convert(lease, Lease)
        holder = found.spec.holder_identity or found.metadata.annotations.get(RELEASED_BY, "")
        name, seconds_set = clock_name(holder), _seconds_set(found)
        self._last_clock = clock_name(holder, seconds_set)
        said = _renewed(lease)
        if said is None:
            return
        reading = ClockReading.of_renewal(said - seconds_set, self._looked_at, now)
        known = self._clocks.pop(name, None)
        self._clocks[name] = reading if known is None else known.and_then(reading)
        while len(self._clocks) > MOST_CLOCKS:
            del self._clocks[next(iter(self._clocks))]

    def _is_held_by_another(self) -> bool:
        if not self.holder or self._is_ours():
            return False
        duration = wire.convert(self._seen, Lease).spec.lease_duration_seconds or self._times.duration
        return self._clock.monotonic() - self._seen_at < duration

    def _is_ours(self) -> bool:
        """Return whether we wrote the lease; a name alone proves nothing, another process may have it too."""
        return self.holder == self._identity and self._seen.get("spec", {}).get("renewTime") in self._renewals

    def _settle(self, write_until: float | None) -> None:
        was = self.is_leader
        self._write_until = write_until
        if was != self.is_leader:
            log.info(
                "lease %s/%s: %s", self._namespace, self._name, "leading" if self.is_leader else "not leading"
            )
            if self._on_change is not None:
                self._on_change(self.is_leader)


def _seconds_set(lease: Lease) -> float:
    try:
        seconds = float(lease.metadata.annotations.get(CLOCK_SET, 0))
    except ValueError:
        return 0.0
    return seconds if isfinite(seconds) else 0.0


def _renewed(lease: Json) -> float | None:
    renewed = wire.convert(lease, Lease).spec.renew_time
    return None if renewed is None else renewed.timestamp()
