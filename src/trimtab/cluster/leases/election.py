"""Leader election by a Lease, with fencing.

The times are client-go's: a lease of 15 s, renewed every 2 s, lost 10 s after the last renewal. client-go's election
does not fence writes. Here `may_write` compares the monotonic clock with the time before the last successful renewal was
sent, so that a process that was suspended cannot write after its lease may have expired. A new leader waits the full
15 s.
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
from trimtab.cluster.leases.creation import create_lease
from trimtab.cluster.leases.epoch import (
    MOST_CLOCKS,
    ClockReading,
    Epoch,
    OwnClock,
    clock_name,
)
from trimtab.cluster.leases.failure_log import FailureLog
from trimtab.cluster.resource import LEASES, Json
from trimtab.cluster.transport.lanes import LEASES as LEASE_LANE
from trimtab.model.core.objects import Lease
from trimtab.model.json import wire
from trimtab.model.times import format_micro_time

log = logging.getLogger(__name__)
_UNTYPED = LEASES.untyped()
RELEASED_BY = "autoscaling.trimtab.dev/released-by"
"""The annotation of a released Lease that names the clock of its last renewTime."""

CLOCK_SET = "autoscaling.trimtab.dev/clock-set"
"""The annotation of a Lease with the seconds by which the clock of its renewTime was set."""

_JITTER = 1.2
_RELEASE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The times of an election, in seconds."""

    duration: float = 15.0
    """How long candidates wait after the last observed renewal."""
    renew_deadline: float = 10.0
    """How long a leader writes after its last renewal. The margin to `duration` is for slow writes."""
    retry: float = 2.0
    """The period of renewals and of a candidate's reads."""

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry * _JITTER > 0:
            raise ValueError(f"{self}: need duration > renew_deadline > {_JITTER} * retry > 0")


def unique_identity(host: str) -> str:
    """Return a unique name for this process."""
    return f"{host}_{uuid.uuid4()}"


class LeaderElector:
    """Tries to hold a Lease. `run` keeps trying until cancelled and then releases it.

    It is a `Fence` for `Client.fenced`. Its own requests are in the lane of Leases, so that no other request delays a
    renewal. Give it a client without a fence.
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
        """The epoch in which this process holds the lease, or last held it."""
        self._client = client.in_lane(LEASE_LANE)
        self._clock = client.clock
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._times = times or LeaseTimes()
        self._annotations = annotations or {}
        self._on_change = on_change
        self._failures = FailureLog(log, self._clock)
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
        """Return whether this process seems to hold the lease. Writes must check `may_write`."""
        return self._write_until is not None

    def may_write(self) -> bool:
        """Return whether this process certainly holds the lease."""
        return self.time_left() > 0

    def time_left(self) -> float:
        """Return for how many seconds this process certainly holds the lease."""
        if self._write_until is None:
            return 0.0
        return max(self._write_until - self._clock.monotonic(), 0.0)

    async def run(self) -> None:
        """Take part in the election until cancelled, then release the lease."""
        try:
            while True:
                await self.step()
                # Jitter, so that two candidates rarely write at the same time.
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
        """Stop writing, and let the next leader take over without waiting."""
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
        """Return whether another process seems to hold the lease."""
        return self._is_held_by_another()

    def observe(self, lease: Json | None) -> None:
        """Process a Lease from a list. Our own Lease is tracked by its renewals."""
        if lease is not None and not self.is_leader:
            self._observe(lease)

    async def step(self) -> None:
        """Try once to acquire or renew the lease."""
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
            self._failures.failed(f"lease {self._namespace}/{self._name}: {why}")
            held = None
        else:
            self._failures.succeeded()
        if held:
            self._settle(sent_at + self._times.renew_deadline)
        elif held is False or not self.may_write():
            # Another process holds it, or no read succeeded for too long.
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
            # Before the write, so that the epoch continues if the response is lost and the next read shows our own renewal.
            self.epoch = self._next_epoch(_renewed(current))
        return await self._write(current)

    def _next_epoch(self, renewed: float | None) -> Epoch:
        return Epoch(self._last_clock, renewed, dict(self._clocks), self._own_clock)

    async def _create(self) -> bool:
        # The Lease of a leader was deleted. Wait until that leader must have stopped.
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
        self._observe(await create_lease(self._client, _UNTYPED, body, self._namespace))
        return True

    async def _write(self, current: Json) -> bool:
        """Renew or take over. The resourceVersion lets only one of two candidates succeed."""
        now = self._clock.now()
        body = {
            **current,
            "metadata": self._signed(current.get("metadata", {}), now),
            "spec": {**current.get("spec", {}), **self._record(now)},
        }
        self._observe(await self._client.update(_UNTYPED, self._name, self._namespace, body))
        return True

    def _signed(self, metadata: Json, moment: datetime) -> Json:
        """Return the metadata with the holder's annotations. They change together with the holder."""
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
        """Process the server's Lease. A change starts the wait again, whatever times it contains."""
        now = self._clock.monotonic()
        if lease.get("spec") != self._seen.get("spec"):
            self._seen_at = now
            self._read_clock(lease, now)
        self._seen, self._looked_at = lease, now
        spec = wire.convert(lease, Lease).spec
        self.holder = spec.holder_identity
        self.transitions = spec.lease_transitions

    def _read_clock(self, lease: Json, now: float) -> None:
        """Update the estimate of the holder's clock from its renewal or release."""
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
        """Return whether this process wrote the lease. The holder's name alone is not a proof."""
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
