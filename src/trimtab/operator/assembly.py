"""Puts one operator process together from its settings."""

import logging
import socket
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry

from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.fence import Fence, NoFence
from trimtab.cluster.leader import LeaderElector, unique_identity
from trimtab.operator.health import HealthApp
from trimtab.operator.horizontal.component import HorizontalAutoscaler, rules_of
from trimtab.operator.horizontal.native import refuse_rival_controller
from trimtab.operator.horizontal.records import pages_of
from trimtab.operator.process import Component, elector_of, last_renewal, run_until_stopped
from trimtab.operator.settings import Settings
from trimtab.serving import served

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]


class Operator:
    """All that `trimtab run` runs."""

    def __init__(self, clock: Clock, client: Client, settings: Settings, *, token: str = "") -> None:
        self._clock = clock
        self._client = client
        self._settings = settings
        self._token = token
        self._identity = unique_identity(socket.gethostname())
        self.registry = CollectorRegistry()
        self._elector: LeaderElector | None = None
        self._last_renewal: float | None = None
        fence: Fence = NoFence()
        if settings.leader_elect:
            self._elector = elector_of(client, settings, self._identity, self._on_leadership)
            fence = self._elector
        self.horizontal = HorizontalAutoscaler(
            clock,
            client,
            settings,
            rules=rules_of(settings),
            registry=self.registry,
            fence=fence,
            instance=self._identity,
        )
        self.components: list[Component] = [self.horizontal]

    async def run(self) -> None:
        """Work until a signal asks to stop."""
        if self._settings.native_hpas:
            await refuse_rival_controller(self._client, self._clock.now())
        if self._elector is not None:
            self._last_renewal = await last_renewal(self._client, self._settings)
        else:
            self.horizontal.start_over(None)
        app = HealthApp(
            self.components, self.registry, token=self._token, pages=pages_of(self.horizontal.autoscalers)
        )
        async with served(app, self._settings.bind_address, self._settings.port) as port:
            log.info(
                "started",
                extra={"facts": {"port": port, "components": ",".join(self._settings.components)}},
            )
            work: list[Work] = [component.run for component in self.components]
            if self._elector is not None:
                work.append(self._elector.run)
            await run_until_stopped(self._clock, work)

    def _on_leadership(self, leads: bool) -> None:
        if leads:
            self.horizontal.start_over(self._last_renewal)
        else:
            # Whoever leads now decides; should we lead again, this is the last moment we know of.
            self._last_renewal = self._clock.now().timestamp()
