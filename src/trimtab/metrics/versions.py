"""Chooses the versions of the metrics APIs from those that the server lists.

A metrics server or an adapter may be upgraded or replaced while Trimtab runs. Repeated look-ups detect it without a
restart. Custom metrics use the server's preferred version. Usage of pods (metrics.k8s.io) prefers v1, which holds the
same data as v1beta1, and uses the other version while one of them fails, in whichever way it does.
"""

import asyncio
from collections.abc import Collection
from math import inf

from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.codec.objects import decode_answer
from trimtab.cluster.errors import ClusterError, NotFound
from trimtab.cluster.transport import Request
from trimtab.metrics.queries import CUSTOM_GROUP, RESOURCE_GROUP, MetricsError
from trimtab.model.json.wire import Wire
from trimtab.pacing import Backoff

KNOWN = ("v1beta2", "v1beta1")
NOT_SERVED = f"no custom metrics API ({CUSTOM_GROUP}) registered"
"""Upstream's words, so that one search finds both programs' messages."""

USAGE_VERSIONS = ("v1", "v1beta1")
"""The supported versions of metrics.k8s.io, newest first. v1 is served since Kubernetes 1.37."""

USAGE_UNLISTED = ("v1beta1", "v1")
"""The order without a list of the served versions: every metrics-server before 1.37 serves v1beta1 only."""

USAGE_SECONDS = 600.0
"""How long listed versions of metrics.k8s.io are used while they answer. A version that ends is replaced at once, and
one that appears holds the same data, so that more look-ups would gain nothing."""

RETRY_PERIODS = 4
"""A failing version is tried again after one period, then after two, then every four periods."""

SHARE = 0.6
"""Part of a query's deadline for a version if another one is asked after it."""

RETRY_SHARE = 0.2
"""The same for a failing version while another one works. A healthy metrics server takes some 100 ms."""

LAST_SHARE = 0.95
"""The same for all versions together. The query then still fails with the error of the preferred version."""


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

    A look-up never fails a query: without an answer the last list counts, and without any the supported versions. A
    version that fails is left out. From time to time one query tries it again, and while no version works every query
    asks the newest, so that failures never double the number of requests.
    """

    def __init__(self, clock: Clock, client: Client, *, recheck_after: float = 15.0) -> None:
        self.recheck_after = recheck_after
        """Seconds until a version that failed, or an API that is not served, is tried again."""
        self._clock = clock
        self._look_up = _LookUp(clock, client, RESOURCE_GROUP, "looking up metrics.k8s.io")
        self._failing: dict[str, Backoff] = {}
        self._versions: tuple[str, ...] = USAGE_UNLISTED
        """The versions in the order in which they are asked. None is listed for an API that is not served."""
        self._order = USAGE_UNLISTED

    async def refresh(self) -> None:
        """Look the versions up if the last look-up is too old."""
        look_up = self._look_up
        is_working = not self._failing and look_up.group is not None and not look_up.error and self._versions
        if await look_up.refresh(USAGE_SECONDS if is_working else self.recheck_after):
            self._take_list()

    def _take_list(self) -> None:
        if self._look_up.group is None:
            return
        listed = self._look_up.group.listed
        self._order = USAGE_VERSIONS
        self._versions = tuple(version for version in USAGE_VERSIONS if version in listed)
        self._failing = {
            version: failing for version, failing in self._failing.items() if version in self._versions
        }

    def current(self, tried: Collection[str] = ()) -> str:
        """Return the newest listed version that works and was not `tried`, else the newest."""
        versions = self._versions
        if not versions:
            return USAGE_UNLISTED[0]  # the server's own answer says what is missing
        if not self._failing and not tried:
            return versions[0]
        works = any(version not in self._failing for version in versions)
        for version in versions:
            is_last_resort = not works and version == versions[0]
            if version not in tried and (is_last_resort or self._may_ask(version)):
                return version
        return versions[0]

    def patience(self, version: str, deadline: float) -> float | None:
        """Return how many seconds a version may take, or None if no other is asked after it."""
        others = [other for other in self._versions if other != version]
        works = any(other not in self._failing for other in others)
        if version not in self._failing:
            return deadline * SHARE if works else None
        if works:
            return deadline * RETRY_SHARE
        return deadline * SHARE if any(map(self._is_due, others)) else None

    def preferred(self, versions: Collection[str]) -> str:
        """Return the version of these that is asked first while all work."""
        return min(versions, key=self._order.index)

    def note_failed(self, version: str) -> None:
        """Record that a list of usage failed in this version."""
        if version not in self._failing:
            period = self.recheck_after
            self._failing[version] = Backoff(self._clock, first=period, longest=RETRY_PERIODS * period)
            self._failing[version].failed()

    def note_answered(self, version: str) -> None:
        """Record that a list of usage was answered in this version."""
        self._failing.pop(version, None)

    def _may_ask(self, version: str) -> bool:
        """Return whether a version works, or is to be tried again by this query."""
        failing = self._failing.get(version)
        if failing is None:
            return True
        if not self._is_due(version):
            return False
        # Before the answer, so that no other query waits for a version that may hang.
        failing.failed()
        return True

    def _is_due(self, version: str) -> bool:
        return not self._failing[version].is_waiting


def choose(preferred: str, served: list[str]) -> str | None:
    """Return the server's preferred version if it is supported, else the newest supported one."""
    if preferred in KNOWN:
        return preferred
    return next((version for version in KNOWN if version in served), None)
