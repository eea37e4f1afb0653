"""The dashboard component of `trimtab run`.

Next to an operator that leads, it shows that operator's own decisions. If another replica leads, or the dashboard runs
alone, a `ReadOnlyDecider` decides about the same objects from the stored memory, and the page states it.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trimtab.clock import Clock
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.dashboard.auth.access import Access, ClusterAccess
from trimtab.dashboard.pages.views import KindView, Notice, ProgramView
from trimtab.dashboard.read_only import ReadOnlyController, ReadOnlyDecider
from trimtab.dashboard.sources import Controls, NoVertical, Sources
from trimtab.dashboard.sources.cluster_health import (
    NO_CRDS,
    NO_HPAS,
    NO_VPAS,
    ClusterConnection,
    ReadProblems,
    hint_at_native_hpas,
)
from trimtab.dashboard.sources.horizontal import OperatorHorizontal
from trimtab.dashboard.sources.operator_settings import REFRESH_SECONDS, OperatorSettings
from trimtab.dashboard.sources.remote import ClusterEvents, RemoteState, ServedVPAs
from trimtab.dashboard.sources.vertical import OperatorVertical
from trimtab.dashboard.web.app import DashboardApp
from trimtab.decide.horizontal import Observation
from trimtab.decide.horizontal.observation.owners import OwnerLookup
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.operator import Parts
from trimtab.operator.settings.declare import reject_bad_values
from trimtab.operator.settings.process import DashboardSettings
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.recommender.controller import Recommender
from trimtab.operator.vertical.updater.controller import Updater
from trimtab.serving.hosts import LOOPBACK_HOSTS
from trimtab.serving.server import served
from trimtab.serving.tls import write_private

if TYPE_CHECKING:
    from trimtab.serving.certificates import ServedTls

log = logging.getLogger(__name__)

_ALONE_TEXT: Final = (
    "This page only looks. It decides for itself, from what the operator stored; its numbers may be some seconds off, "
    "and nothing is written."
)
_STANDBY_NOTICE: Final = Notice(
    text="Another copy of this program leads. What you see is decided here from what that copy stored, and is not written."
)


class Dashboard:
    """Serves the page while the component runs.

    `announce` receives its address, and `report` each problem of the connection as soon as it changes.
    """

    name = "dashboard"

    def __init__(
        self,
        parts: Parts,
        announce: Callable[[str], None] | None = None,
        report: Callable[[str], None] = lambda _problem: None,
    ) -> None:
        check(parts.settings.dashboard)
        self._parts = parts
        self._announce = announce
        is_alone = parts.horizontal is None
        self._own_controller = (
            ReadOnlyController(parts.clock, parts.client, parts.settings) if is_alone else None
        )
        period = parts.settings.horizontal.sync_period.total_seconds()
        fence = ClosedFence() if is_alone else parts.fence
        self._connection = ClusterConnection(parts.clock, parts.client, report)
        self._decider = ReadOnlyDecider(
            parts.clock, self._horizontal, fence, period, self._connection.is_answering
        )
        loops_here = [*parts.loops, *([] if is_alone else ["horizontal"])]
        self._settings = OperatorSettings(parts.client, parts.settings, loops_here)
        self._hpas = OperatorHorizontal(
            self._own_controller or self._horizontal.hpas,
            events=ClusterEvents(parts.client).about,
            owners=self._find_owners,
            is_read_only=lambda: self._decider.is_active,
        )
        self._native_hint = ""
        self._vpas = ServedVPAs(parts, self._build_vertical, self._settings.for_vpas)

    @property
    def _horizontal(self) -> HpaController:
        if self._own_controller is not None:
            return self._own_controller.controller
        assert self._parts.horizontal is not None
        return self._parts.horizontal

    async def _find_owners(self, observation: Observation) -> dict[str, OwnerLookup]:
        return await self._horizontal.find_owners(observation)

    def health(self) -> dict[str, str]:
        """Return the problems of the read-only copy. A component of this process reports its own."""
        return self._horizontal.health() if self._own_controller is not None else {}

    def program(self) -> ProgramView:
        """Return what every viewer should know about this program and what it can read."""
        horizontal, problem = self._horizontal, self._connection.problem
        texts, is_absent = {**horizontal.health(), **self._vpas.problems()}, horizontal.lacks_kinds()
        if is_absent:
            texts.pop("own", None)  # said in one sentence for all kinds
        problems = ReadProblems(texts, (*horizontal.caches(), *self._vpas.caches()))
        # Without a connection nothing is decided, and where the settings come from is not known either.
        decides = () if problem else self._who_decides()
        gone = () if problem else self._settings.presence.notices()
        return ProgramView(
            notices=(*gone, *decides, *([NO_CRDS] if is_absent else []), *problems.notices(problem)),
            data_at=self._connection.answered_at if problem else None,
            is_operator_gone=bool(gone),
            horizontal=KindView(
                is_read=horizontal.has_listed_hpas(),
                is_served=not is_absent,
                hint=self._native_hint or (NO_HPAS if is_absent else ""),
            ),
            vertical=KindView(
                is_read=self._vpas.is_read,
                is_served=not self._vpas.is_absent,
                hint=NO_VPAS if self._vpas.is_absent else "",
            ),
        )

    def _who_decides(self) -> tuple[Notice, ...]:
        if not self._decider.is_active:
            return ()
        if self._own_controller is None:
            return (_STANDBY_NOTICE,)
        text = " ".join([_ALONE_TEXT, *map(_sentence, self._settings.not_shown())])
        return (Notice(text=text, details=tuple(map(_sentence, self._settings.lines()))),)

    async def run(self) -> None:
        """Serve until cancelled. The page is served first, because a cluster may take long to answer, or never do."""
        async with AsyncExitStack() as stack:
            app = self._build_app()
            certificate = _certificate(self._parts.settings.dashboard)
            port = await self._serve(stack, app, certificate)
            self._report_address(app, port)
            renewal = [certificate.run(self._parts.clock)] if certificate else []
            await asyncio.gather(self._connection.run(), self._read(stack), *renewal)

    async def _read(self, stack: AsyncExitStack) -> None:
        """Read the cluster by the operator's settings until cancelled."""
        await self._apply_settings()
        if self._own_controller is not None:
            stack.push_async_callback(self._own_controller.close)
            self._own_controller.start()
        stack.push_async_callback(self._vpas.close)
        await asyncio.gather(self._decider.run(), self._vpas.run(), self._follow_settings())

    async def _follow_settings(self) -> None:
        while True:
            self._native_hint = await hint_at_native_hpas(
                self._parts.client, self._settings.for_hpas(), shown=len(self._horizontal.hpas)
            )
            await self._parts.clock.sleep(REFRESH_SECONDS)
            await self._apply_settings()

    async def _apply_settings(self) -> None:
        await self._settings.refresh()
        settings = self._settings.for_hpas()
        try:
            if self._own_controller is not None:
                self._decider.horizontal = await self._own_controller.apply_settings(settings)
                self._decider.period = settings.horizontal.sync_period.total_seconds()
            await self._vpas.apply_settings()
        except ValueError as error:
            log.warning("the operator's settings are invalid here: %s", error)

    async def _serve(self, stack: AsyncExitStack, app: DashboardApp, certificate: "ServedTls | None") -> int:
        settings = self._parts.settings.dashboard
        address, port = settings.dashboard_address, settings.dashboard_port
        tls = certificate.base if certificate else None
        try:
            return await stack.enter_async_context(serving(app, address, port, tls=tls))
        except OSError as error:
            raise ValueError(
                f"the dashboard cannot listen on {address}:{port}: {error.strerror or error}; choose another "
                "--dashboard-port, or 0 for any"
            ) from error

    def _build_app(self) -> DashboardApp:
        settings = self._parts.settings.dashboard
        is_open = settings.dashboard_login == "token"
        access: Access | None = None if is_open else ClusterAccess(self._parts.clock, self._parts.client)
        return DashboardApp(
            self._parts.clock,
            Sources(self._hpas, self._vpas, self.program),
            access=access,
            hosts=settings.dashboard_hosts,
        )

    def _report_address(self, app: DashboardApp, port: int) -> None:
        settings = self._parts.settings.dashboard
        address = app.url(port, self._host(), is_https=bool(settings.dashboard_cert_file))
        if self._announce is not None:
            self._announce(address)
            return
        plain, facts = address.partition("#")[0], {}
        if settings.dashboard_login == "token":
            file = Path(settings.dashboard_address_file)
            write_address(file, address)
            facts = {"addressWithToken": str(file)}
        log.info("dashboard", extra={"facts": {"address": plain, **facts}})

    def _host(self) -> str:
        settings = self._parts.settings.dashboard
        is_loopback = settings.dashboard_address in LOOPBACK_HOSTS
        return (
            settings.dashboard_address if is_loopback else next(iter(settings.dashboard_hosts), "localhost")
        )

    def _build_vertical(self, view: ClusterView) -> OperatorVertical:
        parts = self._parts
        recommender, updater = parts.loops.get("recommender"), parts.loops.get("updater")
        return OperatorVertical(
            view,
            recommender if isinstance(recommender, Recommender) else None,
            updater if isinstance(updater, Updater) else None,
            RemoteState(parts.clock, parts.client, view, lambda: self._settings.vertical),
        )


def check(settings: DashboardSettings) -> None:
    """Raise ValueError if the dashboard's settings contradict each other."""
    reject_bad_values(settings)
    if bool(settings.dashboard_cert_file) != bool(settings.dashboard_key_file):
        raise ValueError("--dashboard-cert-file and --dashboard-private-key-file belong together")
    is_loopback = settings.dashboard_address in LOOPBACK_HOSTS
    if not is_loopback and settings.dashboard_login == "token":
        raise ValueError(
            f"--dashboard-login=token opens everything and is for loopback only, not for {settings.dashboard_address}; "
            "use --dashboard-login=cluster"
        )
    if not is_loopback and not settings.dashboard_cert_file:
        raise ValueError(
            f"--dashboard-address={settings.dashboard_address} would send logins in the clear; give "
            "--dashboard-cert-file and --dashboard-private-key-file, or listen on 127.0.0.1"
        )


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."


def _certificate(settings: DashboardSettings) -> "ServedTls | None":
    if not settings.dashboard_cert_file:
        return None
    # Imported when needed: cryptography takes 50 ms of a start, and most pages have no certificate.
    from trimtab.serving.certificates import PairFiles, PairOrigin, ServedTls  # noqa: PLC0415

    files = Path(settings.dashboard_cert_file), Path(settings.dashboard_key_file)
    origin = PairOrigin("the dashboard", *files)
    return ServedTls(origin, PairFiles(origin))


def dashboard_for(
    clock: Clock,
    hpa_states: Iterable[HpaState],
    *,
    vertical: OperatorVertical | None = None,
    access: Access | None = None,
    controls: Controls | None = None,
    hosts: tuple[str, ...] = (),
    owners: Callable[[Observation], Awaitable[dict[str, OwnerLookup]]] | None = None,
) -> DashboardApp:
    """Return a dashboard of an operator's HPAs (`HpaController.hpas`) and, if given, its VPAs.

    Without `access` the app's own random `token` logs in. `hosts` are accepted Host headers besides loopback. `owners`
    (`HpaController.find_owners`) finds the owners of the pods on a page.
    """
    return DashboardApp(
        clock,
        Sources(OperatorHorizontal(hpa_states, owners=owners), vertical or NoVertical()),
        access=access,
        controls=controls,
        hosts=hosts,
    )


@asynccontextmanager
async def serving(
    app: DashboardApp, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve a dashboard and keep it up to date while the context lasts.

    Yield its port. Raise OSError if the port is taken.
    """
    async with served(app, host, port, tls=tls) as bound:
        refreshing = asyncio.ensure_future(app.run())
        try:
            yield bound
        finally:
            refreshing.cancel()
            await asyncio.gather(refreshing, return_exceptions=True)


def write_address(path: Path, address: str) -> None:
    """Write the address with its token to a private file, because others may read the log (S15)."""
    write_private(path, f"{address}\n")
