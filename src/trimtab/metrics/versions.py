"""Chooses the versions of the metrics APIs from those that the server lists.

A metrics server or an adapter may be upgraded or replaced while Trimtab runs. Repeated look-ups detect it without a
restart. Custom metrics use the server's preferred version. Usage of pods (metrics.k8s.io) prefers v1, which holds the
same data as v1beta1, and uses the other version while one of them fails.
"""

import asyncio
from collections.abc import Collection
from math import inf

from trimtab.clock import Clock
from trimtab.cluster.cache.codec import decode_answer
from trimtab.cluster.client import Client
from trimtab.cluster.errors import ClusterError, NotFound
from trimtab.cluster.transport.transport import Request
from trimtab.metrics.queries import CUSTOM_GROUP, RESOURCE_GROUP, MetricsError
from trimtab.model.json.wire import Wire

KNOWN = ("v1beta2", "v1beta1")
NOT_SERVED = "no version of the custom metrics API is served"

USAGE_VERSIONS = ("v1", "v1beta1")
"""The supported versions of metrics.k8s.io, newest first. v1 is served since Kubernetes 1.37."""

USAGE_UNLISTED = ("v1beta1", "v1")
"""The order without a list of the served versions: every metrics-server before 1.37 serves v1beta1 only."""

USAGE_SECONDS = 600.0
"""How long listed versions of metrics.k8s.io are used while they answer. A version that ends is replaced at once, and
one that appears holds the same data, so that more look-ups would gain nothing."""


_MAX_BYTES = 64 * 1024
"""Maximum bytes of a list of versions. A real one has a few hundred."""


class _GroupVersion(Wire):
    version: str = ""


class _Group(Wire):
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion = _GroupVersion()

    @property
    def listed(self) -> list[str]:
        return [each.version for each in self.versions]


class _LookUp:
    """The versions of an API group, as the server last listed them."""

    def __init__(self, clock: Clock, client: Client, group: str, act: str) -> None:
        self._clock = clock
        self._client = client
        self._path = f"/apis/{group}"
        self._act = act
        self._asked_at = -inf
        self._in_turn = asyncio.Lock()
        self.group: _Group | None = None
        """None before the first answer. A group that is not served has no versions."""
        self.error: ClusterError | None = None
        """Why the last look-up failed."""

    async def refresh(self, period: float) -> bool:
        """Look the group up if the last look-up is older than `period`. Return whether this call did."""
        if not self._is_older(period):
            return False
        # All queries of a sync wait for the look-up, since some of them would fail in the old version.
        async with self._in_turn:
            if not self._is_older(period):
                return False
            try:
                await self._ask()
            finally:
                self._asked_at = self._clock.monotonic()
        return True

    def _is_older(self, period: float) -> bool:
        return self._clock.monotonic() - self._asked_at >= period

    async def _ask(self) -> None:
        self.error = None
        try:
            request = Request("GET", self._path, max_body=_MAX_BYTES)
            answer = await self._client.sender.send(self._act, request)
            self.group = decode_answer(self._act, answer.body, _Group)
        except NotFound:
            self.group = _Group()
        except ClusterError as error:
            self.error = error


class CustomMetricsVersion:
    """The version of the custom metrics API in use."""

    def __init__(self, clock: Clock, client: Client, *, believed_for: float = 15.0) -> None:
        self.believed_for = believed_for
        self._look_up = _LookUp(clock, client, CUSTOM_GROUP, "looking up custom metrics")

    async def current(self) -> str:
        """Return the version to use. A failed look-up keeps the last version. Absence is cached as long."""
        await self._look_up.refresh(self.believed_for)
        group = self._look_up.group or _Group()
        version = choose(group.preferred_version.version, group.listed)
        if version is None:
            raise MetricsError(self._problem())
        return version

    def _problem(self) -> str:
        error = self._look_up.error
        return f"looking up the version of the custom metrics API: {error}" if error else NOT_SERVED


class UsageVersion:
    """The version of metrics.k8s.io in use.

    A look-up never fails a query: without an answer the last list counts, and without any the supported versions.
    """

    def __init__(self, clock: Clock, client: Client, *, recheck_after: float = 15.0) -> None:
        self.recheck_after = recheck_after
        """Seconds until a version that failed, or an API that is not served, is tried again."""
        self._clock = clock
        self._look_up = _LookUp(clock, client, RESOURCE_GROUP, "looking up metrics.k8s.io")
        self._failed_at: dict[str, float] = {}

    async def current(self, tried: Collection[str] = ()) -> str:
        """Return the newest listed version that neither failed just now nor was `tried`, else the newest."""
        self._forgive()
        is_working = self._served() and not self._failed_at and self._look_up.error is None
        await self._look_up.refresh(USAGE_SECONDS if is_working else self.recheck_after)
        versions = USAGE_UNLISTED if self._look_up.group is None else self._served()
        if not versions:
            return USAGE_UNLISTED[0]  # the server's own answer says what is missing
        left_out = {*self._failed_at, *tried}
        return next((version for version in versions if version not in left_out), versions[0])

    def note_failed(self, version: str) -> None:
        """Record that the server did not answer in this version."""
        self._failed_at[version] = self._clock.monotonic()

    def _forgive(self) -> None:
        since = self._clock.monotonic() - self.recheck_after
        self._failed_at = {version: at for version, at in self._failed_at.items() if at > since}

    def _served(self) -> tuple[str, ...]:
        listed = self._look_up.group.listed if self._look_up.group else []
        return tuple(version for version in USAGE_VERSIONS if version in listed)


def choose(preferred: str, served: list[str]) -> str | None:
    """Return the server's preferred version if it is supported, else the newest supported one."""
    if preferred in KNOWN:
        return preferred
    return next((version for version in KNOWN if version in served), None)
