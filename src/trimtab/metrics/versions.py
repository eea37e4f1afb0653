"""Chooses the version of custom.metrics.k8s.io: the server's preferred one, looked up once per sync period.

An adapter may be upgraded from v1beta1 to v1beta2 while Trimtab runs. The repeated look-up detects it without a restart.
"""

import asyncio
from math import inf

from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.errors import ClusterError, NotFound
from trimtab.metrics.queries import CUSTOM_GROUP, MetricsError
from trimtab.model.json.wire import Wire

KNOWN = ("v1beta2", "v1beta1")
NOT_SERVED = "no version of the custom metrics API is served"


class _GroupVersion(Wire):
    version: str = ""


class _Group(Wire):
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion = _GroupVersion()


class CustomMetricsVersion:
    """The version of the custom metrics API in use."""

    def __init__(self, clock: Clock, client: Client, *, believed_for: float = 15.0) -> None:
        self._clock = clock
        self._client = client
        self.believed_for = believed_for
        self._version: str | None = None
        self._problem = NOT_SERVED
        self._asked_at = -inf
        self._looking_up = asyncio.Lock()

    async def current(self) -> str:
        """Return the version to use. A failed look-up keeps the last version. Absence is cached as long."""
        if self._is_due():
            # All queries of a sync wait for the look-up, since some of them would fail in the old version.
            async with self._looking_up:
                if self._is_due():
                    try:
                        await self._refresh()
                    finally:
                        self._asked_at = self._clock.monotonic()
        if self._version is None:
            raise MetricsError(self._problem)
        return self._version

    def _is_due(self) -> bool:
        return self._clock.monotonic() - self._asked_at >= self.believed_for

    async def _refresh(self) -> None:
        self._problem = NOT_SERVED
        try:
            group = await self._client.read("looking up custom metrics", f"/apis/{CUSTOM_GROUP}", _Group)
        except NotFound:
            self._version = None
        except ClusterError as error:
            self._problem = f"looking up the version of the custom metrics API: {error}"
        else:
            self._version = choose(group.preferred_version.version, [each.version for each in group.versions])


def choose(preferred: str, served: list[str]) -> str | None:
    """Return the server's preferred version if it is supported, else the newest supported one."""
    if preferred in KNOWN:
        return preferred
    return next((version for version in KNOWN if version in served), None)
