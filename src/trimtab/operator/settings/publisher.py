"""Publishes the settings of an operator that takes part in no election, on a Lease of its own.

Nobody competes for this Lease and nobody waits for it: it carries settings only. An operator without the rights works
on without it, and whoever looks says then what it assumed.
"""

import logging
from typing import Final

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.resource import LEASES, Json
from trimtab.model.times import format_micro_time
from trimtab.operator.settings.published import note_of
from trimtab.operator.settings.settings import Settings

log = logging.getLogger(__name__)

SUFFIX: Final = "-settings"
_SECONDS: Final = 15
_PERIOD: Final = 10.0
_UNTYPED = LEASES.untyped()


class SettingsPublisher:
    """Keeps one Lease with the settings of this process young."""

    def __init__(self, client: Client, settings: Settings, identity: str) -> None:
        self._client = client
        self._namespace = settings.leases.leader_elect_resource_namespace
        self._name = settings.lease_name + SUFFIX
        self._identity = identity
        self._annotations = note_of(settings)
        self._problem = ""

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            await self.step()
            await self._client.clock.sleep(_PERIOD)

    async def step(self) -> None:
        """Publish once; what keeps us from it is logged once."""
        try:
            await self._write()
        except errors.ClusterError as error:
            if str(error) != self._problem:
                log.info("settings are not published: %s", error)
            self._problem = str(error)

    async def _write(self) -> None:
        spec: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": _SECONDS,
            "renewTime": format_micro_time(self._client.clock.now()),
        }
        body = {"metadata": {"annotations": self._annotations}, "spec": spec}
        try:
            await self._client.patch(_UNTYPED, self._name, self._namespace, body)
        except errors.NotFound:
            metadata = {"name": self._name, "namespace": self._namespace, "annotations": self._annotations}
            await self._client.create(_UNTYPED, {"metadata": metadata, "spec": spec}, self._namespace)
