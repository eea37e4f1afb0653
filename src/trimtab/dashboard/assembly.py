"""Puts a dashboard beside a running operator, and serves it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from trimtab.clock import Clock
from trimtab.dashboard.access import Access
from trimtab.dashboard.app import DashboardApp
from trimtab.dashboard.horizontal import OperatorHorizontal
from trimtab.dashboard.source import Controls, NoVertical, Sources
from trimtab.dashboard.vertical import Elsewhere, OperatorVertical, RecommenderView, UpdaterView
from trimtab.decide.horizontal import Observation
from trimtab.decide.horizontal.selection.owners import Found
from trimtab.lab.serve import write_private
from trimtab.operator.horizontal.inputs.hpa_cache import Autoscaler
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.serving.server import served


def dashboard_for(
    clock: Clock,
    autoscalers: Iterable[Autoscaler],
    *,
    vertical: OperatorVertical | None = None,
    access: Access | None = None,
    controls: Controls | None = None,
    hosts: tuple[str, ...] = (),
    owners: Callable[[Observation], Awaitable[dict[str, Found]]] | None = None,
) -> DashboardApp:
    """Return a dashboard of an operator's HPAs (`HorizontalAutoscaler.autoscalers`) and, if given, its VPAs.

    Without `access` the app's own random `token` opens it. `hosts` are names besides loopback that it answers for.
    `owners` (`HorizontalAutoscaler.owners_of`) looks up who owns the pods that a person looks at.
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
