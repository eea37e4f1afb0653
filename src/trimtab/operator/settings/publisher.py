"""Publishes the settings of a replica without leader election, on a Lease of its own.

This Lease carries settings only; no replica competes for it. A replica without the right to write it runs on, and
`explain`, `top` and the dashboard name the settings that they assume.
"""

import logging
from typing import Final

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.lease import create_lease
from trimtab.cluster.resource import LEASES, Json
from trimtab.model.times import format_micro_time
from trimtab.operator.settings.published import settings_annotation
from trimtab.operator.settings.settings import Settings

log = logging.getLogger(__name__)

SUFFIX: Final = "-settings"
_SECONDS: Final = 15
_PERIOD: Final = 10.0
_UNTYPED = LEASES.untyped()


class SettingsPublisher:
    """Renews a Lease that carries the settings of this process."""

    def __init__(self, client: Client, settings: Settings, identity: str) -> None:
        self._client = client
        self._namespace = settings.leases.leader_elect_resource_namespace
        self._name = settings.lease_name + SUFFIX
        self._identity = identity
        self._annotations = settings_annotation(settings)
        self._problem = ""

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            await self.step()
            await self._client.clock.sleep(_PERIOD)

    async def step(self) -> None:
        """Publish once. An error is logged when it changes."""
        try:
            await self._write()
        except errors.ClusterError as error:
            if str(error) != self._problem:
                advice = ""
                if isinstance(error, errors.NotFound):  # a Lease that is missing is made, so its namespace is
                    advice = f"; create it: kubectl create namespace {self._namespace}"
                log.warning(
                    "settings are not published, so that `trimtab explain` and `top` assume the defaults: %s%s",
                    error,
                    advice,
                )
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
            await create_lease(self._client, _UNTYPED, {"metadata": metadata, "spec": spec}, self._namespace)
