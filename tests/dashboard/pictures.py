"""Takes the pictures of the documentation: `python -m tests.dashboard.pictures`, with Chromium installed."""

import asyncio
import tempfile
from pathlib import Path

from tests.dashboard import browser, stage
from tests.dashboard.roles import Frozen
from tests.unit.decide.horizontal import builders as given
from trimtab.clock import SystemClock
from trimtab.dashboard import DashboardApp, LoadView, serving
from trimtab.dashboard.sources import Sources
from trimtab.dashboard.sources.horizontal import OperatorHorizontal
from trimtab.operator.horizontal.hpa_state import HpaState

IMAGES = Path(__file__).parent.parent.parent / "docs/images"
NAMES = {
    "shop": ("cart", "catalog", "checkout", "images", "payments", "recommendations", "search"),
    "data": ("exporter", "ingest", "reports", "stream-a", "stream-b"),
    "platform": ("gateway", "identity", "mailer", "notifier"),
}


def town(source_of):
    """Make the autoscalers of a small company, with half an hour of history for one of them."""
    book: list[HpaState] = []
    source = source_of(book)
    for namespace, names in NAMES.items():
        for place, name in enumerate(names):
            one = stage.autoscaler(name, namespace)
            book.append(one)
            replicas = 2 + (place * 3 + len(name)) % 7
            usage = (50, 51, 92, 49, 12, 53, 47)[(place + len(namespace)) % 7]
            pods = given.pods(replicas)
            if name == "exporter":
                stage.decided(
                    one, 3, given.unreadable("unable to fetch metrics from resource metrics API: 503")
                )
            else:
                stage.decided(one, replicas, given.usage_of(pods, usage), pods=pods)
    book.append(stage.autoscaler("web", "shop", hpa=stage.busy_hpa()))
    stage.wave(source, one=book[-1], steps=67)
    return source


class Loads:
    """Loads that nothing hangs on."""

    def loads(self):
        told = {
            "web": ("shop/web", "the CPU that its work takes"),
            "orders": ("platform/mailer", "what arrives at its queue"),
        }
        return [
            LoadView(name=name, title=title, factor=1, detail=detail)
            for name, (title, detail) in told.items()
        ]

    async def set_factor(self, name, factor):
        raise KeyError(name)


async def main(frozen):
    source = town(OperatorHorizontal)
    app = DashboardApp(SystemClock(), Sources(source, frozen), controls=Loads())
    with tempfile.TemporaryDirectory() as profile:
        async with serving(app) as port, browser.chromium(profile) as address, browser.tab(address) as tab:
            await tab.size(1280, 860)
            await tab.scheme("light")
            await tab.open(app.url(port))
            await tab.until("document.querySelector('.list') && document.querySelector('.live.on')")
            await tab.picture(IMAGES / "overview.png")
            await hpa(tab, "hpa-light")
            await tab.type(".slider .exact", "95")
            await tab.type(".whatif-form > .fields label:nth-child(3) input", "20")
            await tab.until("document.querySelector('.whatif-answer .copyable')")
            await tab.run(
                "document.querySelector('#whatif').scrollIntoView({block: 'start'}); scrollBy(0, -70)"
            )
            await tab.size(1280, 780)
            await tab.picture(IMAGES / "what-if.png")
            await tab.scheme("dark")
            await hpa(tab, "hpa-dark")
            await tab.size(1280, 1010)
            await vpa(tab, frozen)
            await tab.scheme("light")
            await load(tab)
            await tab.size(390, 844, scale=2, mobile=True)
            await hpa(tab, "phone", resize=False)
    await crowd()


async def load(tab):
    await tab.size(1280, 520)
    await tab.run("location.hash = '#/loads'")
    await tab.until("document.querySelectorAll('.load').length > 1")
    await tab.picture(IMAGES / "load.png")


async def crowd():
    """A thousand autoscalers in all states, as a big cluster has them."""
    app = DashboardApp(SystemClock(), Sources(OperatorHorizontal(stage.crowd(1000))))
    with tempfile.TemporaryDirectory() as profile:
        async with serving(app) as port, browser.chromium(profile) as address, browser.tab(address) as tab:
            await tab.size(1280, 860)
            await tab.scheme("light")
            await tab.open(app.url(port))
            await tab.until("document.querySelector('.pager') && document.querySelector('.live.on')")
            await tab.picture(IMAGES / "thousand.png")


async def hpa(tab, name, *, resize=True):
    if resize:
        await tab.size(1280, 1330)
    await tab.run("location.hash = '#/'")
    await tab.until("document.querySelector('.list')")
    await tab.run("location.hash = '#/hpa/shop/web'")
    await tab.until("document.querySelectorAll('.chart canvas').length === 3")
    await tab.run("document.fonts.ready.then(() => new Promise(requestAnimationFrame))")
    await tab.picture(IMAGES / f"{name}.png")


async def vpa(tab, frozen):
    lead = next(row.id for row in frozen.rows() if row.name == "lead")
    await tab.run(f"location.hash = '#/{lead}'")
    await tab.until("document.querySelectorAll('.histogram').length > 1")
    await tab.picture(IMAGES / "vpa.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    asyncio.run(main(Frozen()))
