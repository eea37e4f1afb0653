"""The page in a real Chromium: clicks, keys, live updates, no complaint in the console, and a thousand autoscalers."""

import json
from pathlib import Path

import pytest

from tests.dashboard import stage, viewers
from tests.dashboard.asking import app_of
from tests.dashboard.browser import LIST, NEEDS_BROWSER, has
from tests.dashboard.roles import Frozen
from tests.dashboard.test_rights import lab
from tests.dashboard.test_stream import Knobs
from tests.unit.decide.horizontal import builders as given
from trimtab.dashboard import LoadView, serving

pytestmark = NEEDS_BROWSER


async def test_from_the_printed_address_to_the_reason_and_back(tab):
    app = app_of(stage.wave(steps=20), stage.steady("other"))
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        assert app.token not in await tab.run("location.href"), "the token leaves the address at once"
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.until(has("#main", "Why not fewer?"))
        assert await tab.run("document.querySelectorAll('.chart canvas').length") == 3
        assert await tab.run("document.title") == "web – Trimtab"
        text = await tab.text("#main")
        assert "left out – it belongs to Job/scrape" in text
        assert "SuccessfulRescale" in text
        await tab.run("history.back()")
        await tab.until(LIST)


async def test_without_the_token_a_form_asks_for_it_and_logging_out_ends_there(tab):
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(f"http://127.0.0.1:{port}/")
        await tab.type(".login input", "wrong")
        await tab.press("Enter")
        await tab.until(has("[role=alert]", "not known"))
        await tab.type(".login input", app.token)
        await tab.click(".login button")
        await tab.until(LIST)
        await tab.click(".top button")
        await tab.until("document.querySelector('.login')")
        assert "web" not in await tab.text()
        tab.complaints[:] = [one for one in tab.complaints if "401" not in one]


async def test_the_printed_address_works_in_a_tab_that_has_the_page(tab):
    """It said "There is no such page", and the token stayed in the address."""
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.until(has("#main", "Why not fewer?"))
        await tab.run(f"location.hash = 'token={app.token}'")
        await tab.until(LIST)
        assert await tab.run("location.hash") == "#/"
        await tab.click(".top button")
        await tab.until("document.querySelector('.login')")
        await tab.run("location.hash = 'token=wrong'")
        await tab.until(has("[role=alert]", "not known"))
        assert await tab.run("location.hash") == "#/"
        await tab.run(f"location.hash = 'token={app.token}'")
        await tab.until(LIST)
        assert app.token not in await tab.run("location.href")
        await tab.click(".top button")  # ends the stream before the server goes
        await tab.until("document.querySelector('.login')")
        tab.complaints[:] = [text for text in tab.complaints if "401" not in text]


async def test_a_decision_shows_without_a_reload(tab):
    one = stage.steady()
    app = app_of(one)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(has(".list", "stays at 3"))
        await tab.until(has(".live", "live"))
        stage.decided(one, 3, given.usage_of(given.pods(3), 90), at=given.T + 15)
        await tab.until(has(".list", "scales from 3 to 6"))
        await tab.click("a[href='#/hpa/shop/web']")
        await tab.until(has(".summary", "scales from 3 to 6"))
        stage.decided(one, 6, given.usage_of(given.pods(6), 50), at=given.T + 30, pods=given.pods(6))
        await tab.until(has(".summary", "stays at 6"))
        assert await tab.run("performance.getEntriesByType('navigation').length") == 1


async def test_the_what_if_answers_as_the_decision_would(tab):
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.run("location.hash = '#/hpa/shop/web'")
        await tab.type(".slider .exact", "90")
        await tab.until(has(".whatif-answer .big", "6"))
        assert "scales from 3 to 6" in await tab.text(".whatif-answer")
        await tab.type(".whatif-form > .fields label:nth-child(3) input", "5")
        await tab.until(has(".whatif-answer .big", "5"))
        await tab.type(".whatif-form > .fields label:nth-child(2) input", "7")
        await tab.until(has(".whatif-answer .alarm", "maxReplicas"))
        tab.complaints[:] = [one for one in tab.complaints if "422" not in one]
        await tab.click(".whatif-form p button")
        await tab.until(has(".whatif-answer", "Nothing is written"))


async def test_bytes_are_typed_in_the_unit_of_the_target(tab):
    """The field held 268435456, of which seven digits fitted."""
    one, chosen = stage.autoscaler(hpa=given.hpa(given.memory_value("256Mi"))), given.pods(3)
    stage.decided(one, 3, given.usage_of(chosen, 256 * 1024**2 * 1000), pods=chosen)
    app = app_of(one)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.run("location.hash = '#/hpa/shop/web'")
        await tab.until(has(".slider .unit", "MiB per pod"))
        assert await tab.run("document.querySelector('.slider .exact').value") == "256"
        await tab.type(".slider .exact", "512")
        await tab.until(has(".whatif-answer .big", "6"))


async def test_the_slider_moves_by_keyboard_alone(tab):
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.run("location.hash = '#/hpa/shop/web'")
        await tab.until("document.querySelector('.slider input[type=range]')")
        await tab.run("document.querySelector('.slider input[type=range]').focus()")
        # A busy page may take two presses for one step, as a held key would; what counts is that keys suffice.
        for _ in range(30):
            await tab.press("ArrowRight")
            if await tab.run(has(".whatif-answer", "scales from 3 to")):
                break
        await tab.until(has(".whatif-answer", "scales from 3 to"))
        assert await tab.run("document.activeElement.type") == "range"


async def test_everything_can_be_reached_with_the_tab_key_and_has_a_name(tab):
    app = app_of(stage.wave(steps=5), controls=Knobs())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.press("Tab")
        assert await tab.run("document.activeElement.innerText") == "Skip to content"
        for place in ("#/", "#/hpa/shop/web", "#/loads"):
            await tab.run(f"location.hash = {json.dumps(place)}")
            await tab.until(
                "document.querySelector('#main h1') && !document.querySelector('#main').innerText.includes('Loading')"
            )
            assert await tab.run(NAMELESS) == []


NAMELESS = """[...document.querySelectorAll('button, a, input, select, svg[role=img], [role=img]')].filter((one) => {
  const label = one.labels && [...one.labels].map((each) => each.innerText).join('');
  const by = one.getAttribute('aria-labelledby');
  return !(label || one.getAttribute('aria-label') || one.innerText || (by && document.getElementById(by)));
}).map((one) => one.outerHTML.slice(0, 120))"""


async def test_markup_in_names_and_messages_is_shown_and_never_run(tab):
    ugly = stage.autoscaler(stage.UGLY)
    stage.decided(ugly, 3, given.unreadable(f"{stage.UGLY} said no"))
    app = app_of(ugly)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(has(".list", stage.UGLY))
        await tab.click(".list a")
        await tab.until(has("h1", stage.UGLY))
        await tab.until(has("#main", f"{stage.UGLY} said no"))
        assert await tab.run("window.hacked") is None
        assert await tab.run("document.querySelectorAll('img[src=x]').length") == 0


@pytest.fixture(scope="module")
def frozen():
    return Frozen()


async def test_a_vpa_shows_its_role_its_history_and_its_pods(frozen, tab):
    app = app_of(vertical=frozen)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.click(".segments button:last-child")
        await tab.until(has(".list", "lead"))
        await tab.click("a[href$='/lead']")
        await tab.until(has("#main", "pods with role=leader"))
        assert await tab.run("document.querySelectorAll('.histogram .bar').length > 0")
        text = await tab.text("#main")
        assert "db-0" in text
        assert "How these numbers came about" in text


async def test_a_load_is_turned_up_with_a_click(tab):
    knobs = Knobs()
    app = app_of(controls=knobs)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.click("a[href='#/loads']")
        await tab.click(".load button:nth-child(4)")
        await tab.until(has(".load output", "2"))
        await tab.until(
            "document.querySelector('.load button:nth-child(4)').getAttribute('aria-pressed') === 'true'"
        )
        assert knobs.factors == {"web": 2.0}


class Named(Knobs):
    """Loads named after a workload, a metric, and nothing that an HPA has."""

    def loads(self):
        return [LoadView(name=title, title=title, factor=1) for title in ("shop/web", "orders", "letters")]


async def test_a_load_links_to_the_hpas_that_follow_it(tab):
    """The load of a metric linked to none."""
    app = app_of(stage.wave(steps=5), stage.steady("other"), controls=Named())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.click("a[href='#/loads']")
        await tab.until("document.querySelectorAll('.load').length === 3")
        links = "[...document.querySelectorAll('.load')].map((load) => [...load.querySelectorAll('a')].map((link) => link.hash))"
        wanted = [["#/hpa/shop/web"], ["#/hpa/shop/web"], []]
        await tab.until(f"JSON.stringify({links}) === JSON.stringify({json.dumps(wanted)})")


async def test_a_thousand_autoscalers_are_searched_filtered_and_paged(tab):
    app = app_of(*stage.crowd(1000))
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(has("#main [role=status]", "1000 autoscalers"))
        rows = "document.querySelectorAll('.list tbody tr').length"
        assert await tab.run(rows) == 50
        await tab.click(".pager button:last-child")
        await tab.until(has(".pager", "Page 2 of 20"))
        await tab.click(".state.problem")
        await tab.until(has("#main [role=status]", "100 of 1000"))
        await tab.type("input[type=search]", "service-0419")
        await tab.until(f"{rows} === 1")
        assert "service-0419" in await tab.text(".list")


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
async def test_nothing_is_wider_than_the_screen(tab, width):
    app = app_of(stage.wave(steps=30), stage.steady(stage.UGLY * 3), controls=Knobs())
    async with serving(app) as port:
        await tab.size(width, 800, mobile=width < 700)
        await tab.open(app.url(port))
        await tab.until(LIST)
        for place in ("#/", "#/hpa/shop/web", "#/loads"):
            await tab.run(f"location.hash = {json.dumps(place)}")
            await tab.until(
                "document.querySelector('#main h1') && !document.querySelector('#main').innerText.includes('Loading')"
            )
            assert await tab.run("document.documentElement.scrollWidth") <= width, place


async def test_nothing_is_asked_of_anybody_else(tab):
    app = app_of(stage.wave(steps=5))
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.run("location.hash = '#/hpa/shop/web'")
        await tab.until("document.querySelector('.chart canvas')")
        asked = await tab.run("performance.getEntriesByType('resource').map((one) => one.name)")
        assert asked
        assert {one.split("/")[2] for one in asked} == {f"127.0.0.1:{port}"}


async def test_the_pictures_of_the_documentation_are_there():
    images = Path(__file__).parent.parent.parent / "docs/images"
    for name in ("overview", "hpa-light", "hpa-dark", "phone"):
        assert (images / f"{name}.png").stat().st_size > 10_000


async def log_in(tab, address, token):
    await tab.open(address)
    await tab.type(".login input", token)
    await tab.click(".login button")
    await tab.until("document.querySelector('.live.on')")
    tab.complaints[:] = [one for one in tab.complaints if "401" not in one]  # before the login


async def test_a_viewer_of_vpas_alone_sees_these_and_which_rights_are_missing(tab):
    async with lab("shop") as (client, address, _):
        token = await viewers.account(client, "vpa-viewer", {"shop": {"vpas"}})
        await log_in(tab, address, token)
        await tab.until(has(".list", "the-vpa"))
        assert "Shown are the namespaces in which you may list verticalpodautoscalers" in await tab.text(
            "#main"
        )
        await tab.click("a[href='#/vpa/shop/the-vpa']")
        await tab.until(has(".hidden-parts summary", "4 parts of this page are not shown"))
        await tab.click(".hidden-parts summary")
        assert "you may not list pods in namespace shop" in await tab.text(".hidden-parts")
        titles = await tab.run("[...document.querySelectorAll('.card h2')].map((title) => title.innerText)")
        assert titles == ["Applies to", "app: cpu", "app: memory", "Requests to copy", "Conditions"]
        await tab.click(".top button")
        await tab.until("document.querySelector('.login')")


async def test_a_session_that_ends_leads_to_the_login_with_the_reason(tab):
    app = app_of(stage.steady())
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.until(has(".live", "live"))
        app._sessions._open.clear()
        reason = "Your session has ended; log in with the token that the program printed"
        await tab.until(has("[role=alert]", reason))
        tab.complaints[:] = [one for one in tab.complaints if "401" not in one]
