"""The dashboard as a part of `trimtab run`: beside an operator, or alone as one who only looks.

Beside an operator that acts it shows that operator's own decisions. Where another copy leads, or where the dashboard
runs alone, an onlooker decides about the same objects from what is stored, and the page says so.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from trimtab.clock import Clock
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.dashboard.auth.access import Access, ClusterAccess
from trimtab.dashboard.auth.request_checks import LOOPBACK
from trimtab.dashboard.pages.views import EventView, Notice
from trimtab.dashboard.read_only import LookingCopy, ReadOnlyDecider
from trimtab.dashboard.sources import Controls, NoVertical, Sources
from trimtab.dashboard.sources.horizontal import OperatorHorizontal
from trimtab.dashboard.sources.operator_settings import REFRESH_SECONDS, FollowedSettings
from trimtab.dashboard.sources.remote import ClusterEvents, RemoteState, ServedVPAs
from trimtab.dashboard.sources.vertical import (
    Elsewhere,
    OperatorVertical,
    RecommenderView,
    UpdaterView,
)
from trimtab.dashboard.web.app import DashboardApp
from trimtab.decide.horizontal import Observation
from trimtab.decide.horizontal.observation.owners import OwnerLookup
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.inputs.hpa_state import HpaState
from trimtab.operator.operator import Parts
from trimtab.operator.settings.process import DashboardSettings
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.recommender.controller import Recommender
from trimtab.operator.vertical.updater.controller import Updater
from trimtab.serving.server import served
from trimtab.serving.tls import FileCertificate, write_private


def dashboard_for(
    clock: Clock,
    autoscalers: Iterable[HpaState],
    *,
    vertical: OperatorVertical | None = None,
    access: Access | None = None,
    controls: Controls | None = None,
    hosts: tuple[str, ...] = (),
    owners: Callable[[Observation], Awaitable[dict[str, OwnerLookup]]] | None = None,
) -> DashboardApp:
    """Return a dashboard of an operator's HPAs (`HpaController.hpas`) and, if given, its VPAs.

    Without `access` the app's own random `token` opens it. `hosts` are names besides loopback that it answers for.
    `owners` (`HpaController.find_owners`) looks up who owns the pods that a person looks at.
    """
    return DashboardApp(
        clock,
        Sources(OperatorHorizontal(autoscalers, owners=owners), vertical or NoVertical()),
        access=access,
        controls=controls,
        hosts=hosts,
    )


def vertical_of(
    view: ClusterView,
    recommender: RecommenderView | None = None,
    updater: UpdaterView | None = None,
    elsewhere: Elsewhere | None = None,
) -> OperatorVertical:
    """Return the VPAs of an operator: `Site.view`, the loops that run in this process, and what the cluster tells."""
    return OperatorVertical(view, recommender, updater, elsewhere)


@asynccontextmanager
async def serving(
    app: DashboardApp, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve a dashboard and keep it up to date while the context lasts; yield its port. OSError if it is taken."""
    async with served(app, host, port, tls=tls) as bound:
        looking = asyncio.ensure_future(app.run())
        try:
            yield bound
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)


def keep_address(path: Path, address: str) -> None:
    """Write the address with its token where only its owner can read it, for programs whose log others read (S15)."""
    write_private(path, f"{address}\n")


log = logging.getLogger(__name__)

LOGINS: Final = ("cluster", "token")
_LOOKS_ALONE: Final = (
    "This page only looks. It decides for itself, from what the operator stored; its numbers may be some seconds off, "
    "and nothing is written."
)
_LOOKS_ON: Final = Notice(
    text="Another copy of this program leads. What you see is decided here from what that copy stored, and is not written."
)


class Dashboard:
    """Serves the page while the component runs."""

    name = "dashboard"

    def __init__(self, parts: Parts, announce: Callable[[str], None] | None = None) -> None:
        check(parts.settings.dashboard)
        self._parts = parts
        self._announce = announce
        self._copy = (
            LookingCopy(parts.clock, parts.client, parts.settings) if parts.horizontal is None else None
        )
        fence = ClosedFence() if parts.horizontal is None else parts.fence
        self._onlooker = ReadOnlyDecider(
            parts.clock, self._horizontal, fence, parts.settings.horizontal.sync_period.total_seconds()
        )
        here = [*parts.loops, *(["horizontal"] if parts.horizontal is not None else [])]
        self._followed = FollowedSettings(parts.client, parts.settings, here)
        self._events = ClusterEvents(parts.client)
        self._source = OperatorHorizontal(
            self._copy or self._horizontal.hpas,
            events=self._told,
            owners=self._owners_of,
            looks=lambda: self._onlooker.looks,
        )
        self._vpas = self._vertical()

    @property
    def _horizontal(self) -> HpaController:
        if self._copy is not None:
            return self._copy.component
        assert self._parts.horizontal is not None
        return self._parts.horizontal

    async def _owners_of(self, seen: Observation) -> dict[str, OwnerLookup]:
        return await self._horizontal.find_owners(seen)

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name; what a component beside says itself is not said twice."""
        return self._horizontal.health() if self._copy is not None else {}

    def notices(self) -> tuple[Notice, ...]:
        """Return what a viewer should know about this program."""
        problems = tuple(
            Notice(text=f"{name}: {why}", is_problem=True)
            for name, why in {**self._horizontal.health(), **self._vpas.problems()}.items()
        )
        if not self._onlooker.looks:
            return problems
        if self._copy is None:
            return (_LOOKS_ON, *problems)
        lines = [*self._followed.lines(), *self._followed.left_alone()]
        return (Notice(text=" ".join([_LOOKS_ALONE, *map(_sentence, lines)])), *problems)

    async def run(self) -> None:
        """Serve until cancelled."""
        settings = self._parts.settings
        async with AsyncExitStack() as stack:
            await self._adopt()
            if self._copy is not None:
                stack.push_async_callback(self._copy.close)
                self._copy.start()
            stack.push_async_callback(self._vpas.close)
            app = self._app()
            certificate = _certificate(settings.dashboard)
            port = await self._serve(stack, app, certificate)
            self._tell(app, port)
            loops = [self._onlooker.run(), self._vpas.run(), self._follow()]
            await asyncio.gather(*loops, *([certificate.run(self._parts.clock)] if certificate else []))

    async def _follow(self) -> None:
        """Take up the operator's settings whenever they change."""
        while True:
            await self._parts.clock.sleep(REFRESH_SECONDS)
            await self._adopt()

    async def _adopt(self) -> None:
        await self._followed.refresh()
        settings = self._followed.looking()
        try:
            if self._copy is not None:
                self._onlooker.horizontal = await self._copy.adopt(settings)
                self._onlooker.period = settings.horizontal.sync_period.total_seconds()
            await self._vpas.adopt()
        except ValueError as error:
            log.warning("the operator's settings cannot be used here: %s", error)

    async def _serve(
        self, stack: AsyncExitStack, app: DashboardApp, certificate: FileCertificate | None
    ) -> int:
        settings = self._parts.settings.dashboard
        address, port = settings.dashboard_address, settings.dashboard_port
        tls = certificate.context if certificate else None
        try:
            return await stack.enter_async_context(serving(app, address, port, tls=tls))
        except OSError as error:
            raise ValueError(
                f"the dashboard cannot listen on {address}:{port}: {error.strerror or error}; choose another "
                "--dashboard-port, or 0 for any"
            ) from error

    def _app(self) -> DashboardApp:
        settings = self._parts.settings.dashboard
        is_open = settings.dashboard_login == "token"
        access: Access | None = None if is_open else ClusterAccess(self._parts.clock, self._parts.client)
        return DashboardApp(
            self._parts.clock,
            Sources(self._source, self._vpas, self.notices),
            access=access,
            hosts=settings.dashboard_hosts,
        )

    def _tell(self, app: DashboardApp, port: int) -> None:
        settings = self._parts.settings.dashboard
        address = app.url(port, self._host(), is_https=bool(settings.dashboard_cert_file))
        if self._announce is not None:
            self._announce(address)
            return
        plain, facts = address.partition("#")[0], {}
        if settings.dashboard_login == "token":
            file = Path(settings.dashboard_address_file)
            keep_address(file, address)
            facts = {"addressWithToken": str(file)}
        log.info("dashboard", extra={"facts": {"address": plain, **facts}})

    def _host(self) -> str:
        settings = self._parts.settings.dashboard
        is_near = settings.dashboard_address in LOOPBACK
        return settings.dashboard_address if is_near else next(iter(settings.dashboard_hosts), "localhost")

    async def _told(self, identity: str) -> tuple[EventView, ...]:
        return await self._events.about(identity)

    def _vertical(self) -> ServedVPAs:
        parts, loops = self._parts, self._parts.loops

        def source(view: ClusterView) -> OperatorVertical:
            recommender, updater = loops.get("recommender"), loops.get("updater")
            return OperatorVertical(
                view,
                recommender if isinstance(recommender, Recommender) else None,
                updater if isinstance(updater, Updater) else None,
                RemoteState(parts.clock, parts.client, view, lambda: self._followed.vertical),
            )

        return ServedVPAs(parts, source, self._followed.looking_at_vpas)


def check(settings: DashboardSettings) -> None:
    """Raise ValueError with a clear text if the dashboard's settings do not fit together."""
    if settings.dashboard_login not in LOGINS:
        raise ValueError(
            f"--dashboard-login={settings.dashboard_login} is not known; use {' or '.join(LOGINS)}"
        )
    if bool(settings.dashboard_cert_file) != bool(settings.dashboard_key_file):
        raise ValueError("--dashboard-cert-file and --dashboard-private-key-file belong together")
    is_near = settings.dashboard_address in LOOPBACK
    if not is_near and settings.dashboard_login == "token":
        raise ValueError(
            f"--dashboard-login=token opens everything and is for loopback only, not for {settings.dashboard_address}; "
            "use --dashboard-login=cluster"
        )
    if not is_near and not settings.dashboard_cert_file:
        raise ValueError(
            f"--dashboard-address={settings.dashboard_address} would send logins in the clear; give "
            "--dashboard-cert-file and --dashboard-private-key-file, or listen on 127.0.0.1"
        )


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."


def _certificate(settings: DashboardSettings) -> FileCertificate | None:
    if not settings.dashboard_cert_file:
        return None
    return FileCertificate(
        Path(settings.dashboard_cert_file),
        Path(settings.dashboard_key_file),
        "the dashboard",
    )
