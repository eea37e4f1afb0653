"""What the page says when the program, the cluster or the rights are missing, and when there is nothing to show."""

import asyncio
import re
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from tests.dashboard import stage
from tests.dashboard.asking import app_of
from tests.dashboard.browser import LIST, NEEDS_BROWSER, has
from tests.dashboard.test_component import ALONE, cluster_with_an_hpa, leading, native_rival, running
from tests.support.transport import Line
from tests.unit.decide.horizontal import builders as given
from trimtab.clock import SystemClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.cluster.transport import Response
from trimtab.dashboard import DashboardApp, dashboard, serving
from trimtab.dashboard.dashboard import Dashboard
from trimtab.dashboard.pages.views import KindView, ProgramView
from trimtab.dashboard.sources import (
    NoVertical,
    Sources,
    cluster_health,
    operator_presence,
    operator_settings,
    remote,
)
from trimtab.dashboard.sources.horizontal import OperatorHorizontal
from trimtab.decide.horizontal.observation.observation import ScaleFailure
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal import hpa_watches
from trimtab.operator.operator import Parts
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.published import find_settings
from trimtab_lab.embedded import EmbeddedCluster

pytestmark = NEEDS_BROWSER

LIVE = "document.querySelector('.live.on')"
OLD = "document.querySelector('.old')"
NOT_OLD = "!document.querySelector('.old')"
REFUSED = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE")


def forgive(tab, *texts):
    """Drop what the console must say about requests that failed on purpose."""
    tab.complaints[:] = [text for text in tab.complaints if not any(known in text for known in texts)]


class Cable:
    """A transport that a test pulls out and plugs in again."""

    def __init__(self, inner):
        self._inner = inner
        self.is_out = False
        self.status = 0
        self.refused = 0

    async def request(self, request):
        if self.is_out:
            self.refused += 1
            raise errors.Unreachable(f"{request}: cannot connect to 10.1.2.3:6443: Connection refused")
        if self.status:
            return Response(self.status, {"content-type": "text/plain"}, b"no")
        return await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request):
        if self.is_out or self.status:
            raise errors.Unreachable(f"{request}: cannot connect to 10.1.2.3:6443: Connection refused")
        async with self._inner.stream(request) as stream:
            yield stream

    async def close(self):
        await self._inner.close()


@asynccontextmanager
async def dashboard_on(cluster, transport, settings=ALONE):
    """Run `trimtab dashboard` on a cluster behind a transport; yield its address."""
    client = Client(cluster.clock, transport, seed=7)
    made = Parts(Runtime(cluster.clock, client, settings, fence=ClosedFence()), None, None, {})
    announced: asyncio.Queue[str] = asyncio.Queue()
    async with running(Dashboard(made, announced.put_nowait).run()):
        yield await asyncio.wait_for(announced.get(), 60)


@pytest.fixture
def probes(monkeypatch):
    monkeypatch.setattr(cluster_health, "PROBE_SECONDS", 0.2)


@pytest.fixture
def unread_settings(monkeypatch):
    """Read the operator's settings often, three per turn, and list those that cannot be read."""
    unread = []

    async def find(*which):
        found = await find_settings(*which)
        if "cannot be read" in found.source:
            unread.append(found)
        return found

    monkeypatch.setattr(operator_settings, "find_settings", find)
    monkeypatch.setattr(dashboard, "REFRESH_SECONDS", 0.1)
    return unread


async def test_a_lost_program_dims_the_page_and_says_since_when(tab):
    """It stayed green behind a small "not connected", and another page said "Failed to fetch"."""
    app = app_of(stage.steady(), stage.steady("other"))
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIVE)
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.until(has("#main", "Why not fewer?"))
    await tab.until(OLD)
    banner = await tab.text(".notices [role=alert]")
    assert banner.startswith("The connection to Trimtab was lost at ")
    assert banner.endswith("trying again. What you see is from then.")
    assert await tab.text(".live") == "not connected"
    assert "Why not fewer?" in await tab.text("#main")
    assert "grayscale" in await tab.run("getComputedStyle(document.querySelector('.old')).filter")
    await tab.run("location.hash = '#/hpa/shop/other'")
    await tab.until(has("#main .empty", "Trimtab does not answer. Is it running"))
    async with serving(app, port=port):
        await tab.until(has("#main", "Why not fewer?"))
        await tab.until(f"{LIVE} && {NOT_OLD} && !document.querySelector('.notices [role=alert]')")
    forgive(tab, *REFUSED)


async def test_a_stream_that_falls_silent_counts_as_lost(tab):
    """A laptop that wakes up elsewhere has an open connection that nothing comes over."""
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIVE)
        sent = "document.querySelector('.live').innerText"
        assert await tab.run(sent) == "live"
        await tab.run(
            "window.states = []; new MutationObserver(() => states.push(document.querySelector('.live').innerText))"
            ".observe(document.querySelector('.live'), {subtree: true, childList: true, characterData: true});"
            "(() => { const now = Date.now; Date.now = () => now() + 60000; })()"
        )
        await tab.until("states.includes('not connected') && states.at(-1) === 'live'")


async def test_a_program_that_refuses_the_stream_is_quoted(tab):
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIVE)
        find = app._sessions.by_cookie

        async def refuse(_request):
            from trimtab.dashboard.web.http import RefusedError

            raise RefusedError(503, "the cluster does not review logins now")

        app._sessions.by_cookie = refuse
        app._streams.close()
        await tab.until(
            has(".notices [role=alert]", "The server says: the cluster does not review logins now.")
        )
        app._sessions.by_cookie = find
        await tab.until(LIVE)
    forgive(tab, "503", *REFUSED)


async def test_a_cluster_that_cannot_be_reached_is_one_sentence_and_no_zero(tab, probes):
    """It said "live" and "0 autoscalers" below three red lines."""
    async with cluster_with_an_hpa() as cluster:
        cable = Cable(cluster.client.sender.transport)
        cable.is_out = True
        async with dashboard_on(cluster, cable) as address:
            await tab.open(address)
            await tab.until(has(".notices .alarm", "cannot be reached"))
            (text,) = await tab.run(
                "[...document.querySelectorAll('.notices .alarm')].map((line) => line.innerText)"
            )
            assert text.startswith(
                "The cluster cannot be reached: cannot connect to 10.1.2.3:6443: Connection refused. "
                "Nothing has been read yet; trying again."
            )
            assert await tab.text(".live") == "cluster not read"
            assert "0 autoscalers" not in await tab.text("#main")
            assert await tab.text(".segments") == "Horizontal –\nVertical –"
            assert "cannot be read: the message above says why" in await tab.text("#main")
            cable.is_out = False
            await tab.until(has(".list", "web"))
            await tab.until(f"{LIVE} && !document.querySelector('.notices .alarm')")


async def test_a_cluster_that_is_lost_later_dims_what_was_read(tab, probes, unread_settings):
    """Its HPAs vanished, because this program fell back to its own settings and watched anew."""
    async with cluster_with_an_hpa() as cluster:
        cable = Cable(cluster.client.sender.transport)
        settings = ALONE.replace(sync_period=timedelta(milliseconds=100))
        acting = leading(cluster, sync_period=settings.horizontal.sync_period, tolerance=0.05)
        async with acting, dashboard_on(cluster, cable, settings) as address:
            await tab.open(address)
            await tab.until(f"{LIVE} && {has('.list .why', 'scales from 3 to 6')}")
            reason = await tab.text(".list .why")
            cable.is_out = True
            await tab.until(OLD)
            text = await tab.text(".notices .alarm")
            assert "The cluster cannot be reached" in text
            assert "What you see is from " in text
            async with asyncio.timeout(60):
                while cable.refused < 20 or len(unread_settings) <= 3:  # noqa: ASYNC110 - the transport has no event
                    await asyncio.sleep(0.05)
            assert await tab.text(".list .why") == reason, "no decision is made on a cluster that is gone"
            await tab.click("a[href='#/hpa/default/web']")
            await tab.until(has("#main", "Why not fewer?"))
            assert await tab.run(f"{OLD} !== null")
            cable.is_out = False
            await tab.until(f"{LIVE} && {NOT_OLD}")


async def test_an_operator_that_ends_dims_the_page_until_it_is_back(tab, probes, monkeypatch):
    """The page stayed green and "live", and showed decisions that nobody carried out."""
    monkeypatch.setattr(operator_presence, "RELEASED_SECONDS", 0.1)
    monkeypatch.setattr(dashboard, "REFRESH_SECONDS", 0.1)
    async with (
        cluster_with_an_hpa() as cluster,
        dashboard_on(cluster, cluster.client.sender.transport) as address,
    ):
        async with leading(cluster):
            await tab.open(address)
            await tab.until(f"{LIVE} && {LIST}")
        await tab.until(OLD)
        assert await tab.text(".live") == "operator gone"
        text = await tab.text(".notices .alarm")
        assert text.startswith("The operator does not run: it last renewed its Lease trimtab/trimtab-")
        assert "Until it is back, no HPA is acted on." in text
        assert not re.search(r"\d\d\dZ", text), "the time is the reader's"
        async with leading(cluster):
            await tab.until(f"{LIVE} && {NOT_OLD} && !document.querySelector('.notices .alarm')")


async def test_credentials_that_are_not_accepted_are_named_with_what_to_do(tab, probes):
    async with cluster_with_an_hpa() as cluster:
        cable = Cable(cluster.client.sender.transport)
        cable.status = 401
        async with dashboard_on(cluster, cable) as address:
            await tab.open(address)
            await tab.until(
                has(".notices .alarm", "does not accept this program's credentials (401): log in again")
            )
            assert "0 autoscalers" not in await tab.text("#main")
            assert not await tab.run(LIVE)


@pytest.mark.parametrize(
    ("namespaces", "place"),
    [
        pytest.param((), "in all namespaces", id="the cluster"),
        pytest.param(("default",), "in default", id="one namespace"),
    ],
)
async def test_missing_rights_are_one_sentence_with_the_messages_folded(tab, probes, namespaces, place):
    """Fourteen red lines filled the screen, one per kind, above a green "live" and "0 autoscalers"."""
    async with cluster_with_an_hpa() as cluster:
        without_rights = Line(cluster.client.sender.transport, within=())
        settings = ALONE.replace(watch_namespaces=namespaces)
        async with dashboard_on(cluster, without_rights, settings) as address:
            await tab.open(address)
            await tab.until(has(".notices .alarm", "may not list"))
            await tab.until(has(".notices .alarm summary", "messages"))
            (text,) = await tab.run(
                "[...document.querySelectorAll('.notices .alarm')].map((line) => line.innerText)"
            )
            first = text.splitlines()[0]
            assert first.startswith(
                "This program may not list horizontalpodautoscalers.autoscaling.trimtab.dev, verticalpod"
            )
            assert place in first
            assert "name the namespaces that it may read with -n" in first
            assert len(text.splitlines()) == 2, "the sentence and the closed list of messages"
            assert await tab.text(".live") == "not read"
            assert "0 autoscalers" not in await tab.text("#main")
            await tab.click(".notices .alarm summary")
            assert "Forbidden" in await tab.text(".notices .alarm")


async def test_a_program_that_still_reads_says_so(tab):
    unread = KindView(is_read=False)
    program = ProgramView(horizontal=unread, vertical=unread)
    sources = Sources(OperatorHorizontal([]), NoVertical(), lambda: program)
    app = DashboardApp(SystemClock(), sources)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(has("#main", "Reading the cluster …"))
        await tab.until(has(".live", "reading …"))
        assert "0 autoscalers" not in await tab.text("#main")
        program = ProgramView()
        await tab.until(has("#main", "0 autoscalers"))
        await tab.until(LIVE)


async def test_an_empty_cluster_says_what_to_do_next(tab):
    """It said that none is known yet, also where native HPAs waited for a flag."""
    app = app_of()
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(has("#main", "0 autoscalers"))
        assert "trimtab convert - --to trimtab" in await tab.text(".empty")
        await tab.click(".segments button:last-child")
        await tab.until(has(".empty", "VerticalPodAutoscaler"))
        assert 'updateMode: "Off"' in await tab.text(".empty")


async def test_a_cluster_with_native_hpas_alone_names_the_flag(tab, probes):
    async with EmbeddedCluster(SystemClock()) as cluster:
        await cluster.apply(*all_crds())
        await native_rival(cluster)
        async with dashboard_on(cluster, cluster.client.sender.transport) as address:
            await tab.open(address)
            await tab.until(has(".empty", "only native ones such as default/rival"))
            assert "start this program with --native-hpas" in await tab.text(".empty")
            await tab.until(LIVE)


async def test_a_cluster_without_the_kinds_says_how_to_install_them(tab, probes, monkeypatch):
    """It counted 0 autoscalers, and was live."""
    monkeypatch.setattr(remote, "DISCOVERY_SECONDS", 0.1)
    monkeypatch.setattr(hpa_watches, "RETRY_SECONDS", 0.1)
    async with (
        EmbeddedCluster(SystemClock()) as cluster,
        dashboard_on(cluster, cluster.client.sender.transport) as address,
    ):
        await tab.open(address)
        await tab.until(has(".notices .alarm", "Trimtab's CRDs are not installed in this cluster."))
        assert (
            await tab.text(".notices .alarm code")
            == "trimtab install --only=crds | kubectl apply --server-side -f -"
        )
        await tab.until(has(".live", "not installed"))
        for kind, named in (
            ("last", "VerticalPodAutoscalers"),
            ("first", "HorizontalPodAutoscalers of Trimtab's"),
        ):
            await tab.click(f".segments button:{kind}-child")
            await tab.until(has(".empty", f"The cluster does not serve {named}"))
            assert (
                await tab.text(".empty code")
                == "trimtab install --only=crds | kubectl apply --server-side -f -"
            )
            assert "0 autoscalers" not in await tab.text("#main")
            assert await tab.text(".segments") == "Horizontal –\nVertical –"
        await cluster.apply(*all_crds())
        await tab.until(LIVE)
        await tab.until(has("#main", "0 autoscalers"))


async def test_filters_that_fit_nothing_can_be_cleared(tab):
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(f"{app.url(port)}")
        await tab.until(LIST)
        await tab.type("input[type=search]", "nothing like it")
        await tab.click(".empty button")
        await tab.until(LIST)
        assert await tab.run("document.querySelector('input[type=search]').value") == ""


async def test_an_address_without_a_page_says_so(tab):
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.run("location.hash = '#/foo/bar'")
        await tab.until(has("h1", "There is no such page"))
        await tab.run("location.hash = '#/hpa/shop/gone'")
        await tab.until(has("#main", "there is no 'hpa/shop/gone'"))
    forgive(tab, "404")


async def test_an_hpa_without_its_target_names_it_and_has_no_number(tab):
    """It showed 0 replicas, between bounds of 0 and 0, and did not name the target."""
    lost = stage.autoscaler()
    failure = ScaleFailure(message='deployments.apps "web" not found')
    stage.decided(lost, 3, given.usage_of(given.pods(3), 50), scale=None, scale_failure=failure)
    app = app_of(lost)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        sentence = 'its target Deployment/web cannot be read: deployments.apps "web" not found'
        assert await tab.text(".list .why") == sentence
        assert await tab.text(".list td.number") == "–"
        assert not await tab.run("document.querySelector('.minibar .current')")
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.until(has("#main", "Its replicas are unknown. What to do: create the target, or"))
        assert sentence in await tab.text("#main")
        assert not await tab.run("document.querySelector('.ruler')")


async def test_a_waiting_hpa_says_what_it_waits_for(tab):
    app = app_of(stage.autoscaler())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.until(has("#main", "No decision has been made yet. The first one follows the first sample"))


def wide_hpa():
    lost = stage.autoscaler("lost", "zoo")
    stage.decided(lost, 3, given.unreadable("no metrics API"))
    busy = stage.autoscaler("busy")
    stage.decided(busy, 3, given.usage_of(given.pods(3), 90))
    return [stage.steady("calm"), busy, lost]


def held_hpas():
    """Make one that is held at its maximum, and one by its scale-down window."""
    full, idle = stage.autoscaler("full", "zoo"), stage.autoscaler("idle", "zoo")
    stage.decided(full, 10, given.usage_of(given.pods(10), 90), pods=given.pods(10))
    stage.decided(idle, 4, given.usage_of(given.pods(4), 50), pods=given.pods(4))
    stage.decided(idle, 4, given.usage_of(given.pods(4), 10), pods=given.pods(4), at=given.T + 15)
    return [idle, full]


NAMES = "[...document.querySelectorAll('.list .name a')].map((link) => link.innerText)"


async def test_problems_come_first_and_headers_sort(tab):
    app = app_of(*wide_hpa())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        assert await tab.run(NAMES) == ["lost", "busy", "calm"]
        await tab.click("th:nth-child(2) .sort")
        await tab.until("document.querySelector('th:nth-child(2)').getAttribute('aria-sort') === 'ascending'")
        assert await tab.run(NAMES) == ["busy", "calm", "lost"]
        await tab.click("th:nth-child(2) .sort")
        await tab.until(
            "document.querySelector('th:nth-child(2)').getAttribute('aria-sort') === 'descending'"
        )
        assert await tab.run(NAMES) == ["lost", "calm", "busy"]
        await tab.click("th:nth-child(4) .sort")
        await tab.until("document.querySelector('th:nth-child(4)').getAttribute('aria-sort') === 'ascending'")
        assert await tab.run(NAMES) == ["busy", "calm", "lost"], "the most replicas first"
        await tab.click("th:nth-child(3) .sort")
        await tab.until(f"{NAMES}[0] === 'lost'")
        assert await tab.run(NAMES) == ["lost", "busy", "calm"], (
            "unreadable, then the highest usage of its target"
        )


async def test_hpas_that_cannot_get_what_they_need_follow_the_problems(tab):
    """They stood among the steady ones, by name, on whichever page that was."""
    app = app_of(*wide_hpa(), *held_hpas())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        assert await tab.run(NAMES) == ["lost", "full", "busy", "calm", "idle"]
        assert await tab.run("document.querySelectorAll('.list .badge.held').length") == 2


async def test_the_overview_shows_each_metric_beside_its_target(tab):
    """The first thing that a reader of HPAs looks for was on the second page only."""
    app = app_of(*wide_hpa(), stage.wave(one=stage.autoscaler("web", "yard", hpa=stage.busy_hpa()), steps=5))
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        cells = await tab.run(
            "Object.fromEntries([...document.querySelectorAll('.list tbody tr')].map((row) =>"
            " [row.querySelector('.name a').innerText, row.querySelector('.metrics').innerText.replace(/\\s+/g, ' ')]))"
        )
    assert cells["calm"] == "cpu 50 % / 50 %"
    assert cells["busy"] == "cpu 90 % / 50 %"
    assert cells["lost"] == "cpu unknown / 50 %"
    assert cells["web"].startswith("cpu ")
    assert cells["web"].endswith("/ 12 per pod")


async def test_filters_survive_a_reload_and_the_way_back(tab):
    app = app_of(*wide_hpa())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.type("input[type=search]", "s")
        await tab.click("th:nth-child(2) .sort")
        await tab.click("th:nth-child(2) .sort")
        await tab.click(".state.problem")
        await tab.until(f"{NAMES}.length === 1")
        address = await tab.run("location.hash")
        await tab.send("Page.reload")
        await tab.until(
            f"performance.getEntriesByType('navigation')[0].type === 'reload' && {NAMES}.length === 1"
        )
        assert await tab.run("location.hash") == address
        assert (
            await tab.run("document.querySelector('.state.problem').getAttribute('aria-pressed')") == "true"
        )
        await tab.click(".list .name a")
        await tab.until(has("h1", "lost"))
        await tab.click(".back a")
        await tab.until(f"{NAMES}.length === 1")
        assert await tab.run("location.hash") == address
        await tab.click("nav a[href='#/']")
        await tab.until(f"{NAMES}.length === 3")


async def test_times_name_their_zone_and_their_day(tab):
    """Clock times had neither: the browser's in the page, UTC in `explain`."""
    await tab.send("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
    held = stage.autoscaler()
    stage.decided(held, 4, given.usage_of(given.pods(4), 50), pods=given.pods(4))
    stage.decided(held, 4, given.usage_of(given.pods(4), 10), pods=given.pods(4), at=given.T + 15)
    app = app_of(held)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        assert await tab.text(".zone") == "UTC+5:30"
        assert await tab.text(".when") == "15 Jan 17:30:15"
        assert await tab.run("document.querySelector('.when time').title") == "2026-01-15 12:00:15 UTC"
        await tab.click(".list .name a")
        await tab.until(has(".whys", "UTC+5:30"))


async def test_a_navigation_moves_the_focus_to_the_new_title(tab):
    """It fell to the body, and a screen reader said nothing."""
    app = app_of(stage.steady())
    focused = "document.activeElement.tagName + ' ' + document.activeElement.innerText"
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        assert await tab.run("document.activeElement.tagName") == "BODY", (
            "a page that was just opened starts at its top"
        )
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.until(f"{focused} === 'H1 web'")
        await tab.click(".back a")
        await tab.until(f"{focused} === 'H1 Autoscalers'")
        await tab.run("history.back()")
        await tab.until(f"{focused} === 'H1 web'")


UNREACHABLE_BY_KEY = """[...document.querySelectorAll('#main *')].filter((part) => {
  const scrolls = /auto|scroll/.test(getComputedStyle(part).overflowY + getComputedStyle(part).overflowX);
  const inside = part.querySelector('a[href], button, input, select, summary, [tabindex="0"]');
  return scrolls && part.clientHeight && !inside && part.tabIndex !== 0;
}).map((part) => part.className)"""


@pytest.mark.parametrize("width", [390, 1280])
async def test_what_scrolls_takes_the_focus_and_tables_fit_a_phone(tab, width):
    """Events could not be scrolled by keyboard, and the pods table was cut off on a phone."""
    app = app_of(stage.wave(steps=40))
    async with serving(app) as port:
        await tab.size(width, 844, mobile=width < 700)
        await tab.open(app.url(port))
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.until("document.querySelectorAll('.chart canvas').length === 3")
        await tab.run("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        await tab.until("document.querySelectorAll('.numbers table').length === 3")
        assert await tab.run("document.querySelectorAll('.events, .scroll').length") > 3
        assert await tab.run(UNREACHABLE_BY_KEY) == []
        cut = "[...document.querySelectorAll('.pods')].filter((table) => table.scrollWidth > table.parentElement.clientWidth)"
        assert await tab.run(f"{cut}.length") == 0
        if width < 700:
            labels = "getComputedStyle(document.querySelector('.pods td[data-label]'), '::before').content"
            assert await tab.run(labels) == '"Phase"'


async def test_a_what_if_offers_its_edits_as_a_patch(tab):
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.send(
            "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
        )
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.click(".head-state button")
        assert await tab.run("document.activeElement.closest('.whatif') !== null")
        await tab.type(".slider .exact", "90")
        await tab.until(has(".whatif-answer", "Only the load was changed"))
        await tab.type(".whatif-form > .fields label:nth-child(3) input", "20")
        await tab.type(".whatif-form fieldset:nth-of-type(1) .field:nth-child(2) input", "60")
        await tab.until(has(".whatif-answer .copyable", "stabilizationWindowSeconds: 60"))
        await tab.click(".copyable button")
        await tab.until(has(".copyable", "Copied"))
        assert await tab.run("navigator.clipboard.readText()") == (
            "kubectl patch thpa web -n shop --type merge \\\n"
            "  --patch \"$(cat <<'EOF'\n"
            "spec:\n  maxReplicas: 20\n  behavior:\n    scaleUp:\n      stabilizationWindowSeconds: 60\n"
            'EOF\n)"\n'
        )
