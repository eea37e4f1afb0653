"""Any address gives a page in a real Chromium: old links, links by hand, and links that were cut on their way."""

import itertools
import json

import pytest

from tests.dashboard import stage
from tests.dashboard.asking import app_of
from tests.dashboard.browser import LIST, NEEDS_BROWSER, has
from tests.dashboard.roles import Frozen
from tests.dashboard.test_stream import Knobs
from trimtab.dashboard import serving

pytestmark = NEEDS_BROWSER

OBJECT = "__proto__"
"""A name that every object of JavaScript has a value for."""
VALUES = (
    "",
    "x",
    "vpa",
    "hpa",
    "-",
    "-x",
    "constructor",
    OBJECT,
    "%",
    "%E0%A4%A",
    "-1",
    "1e999",
    "1.5",
    "a&b=c",
)
FIELDS = ("kind", "state", "namespace", "text", "sort", "page", "unknown")
QUERIES = [f"{field}={value}" for field, value in itertools.product(FIELDS, VALUES)]
QUERIES += ["?", "&", "=", "kind", "kind=vertical&sort=replicas", "kind=vertical&state=scaling&page=7"]
OVERVIEWS = [f"#/?{query}" for query in QUERIES] + ["#", "#/", "#?", "#/?", "#?kind=vpa"]
OTHERS = [
    "#/hpa",
    "#/hpa/",
    "#/hpa/shop",
    "#/hpa/shop/",
    "#/hpa/shop/gone",
    "#/hpa/shop/web/more",
    "#/hpa/shop/%",
    "#/hpa/%E0%A4%A/web",
    "#/native/shop/web",
    "#/vpa",
    "#/vpa/shop/gone",
    "#/vpa/%ZZ/%",
    "#/loads/more",
    "#/%",
    "#/foo",
    f"#/{OBJECT}",
    f"#/hpa/{OBJECT}/constructor",
    "#//",
    "#/hpa?kind=vpa",
    "#/hpa/shop/web?sort=constructor&page=%",
    "#/vpa/shop/base?kind=",
    "#/loads?x=%",
]
DRAWN = "document.querySelector('#main h1') && !document.querySelector('#main').innerText.includes('Loading')"


@pytest.fixture(scope="module")
def vpas():
    return Frozen()


def page_of(vpas):
    return app_of(stage.steady(), stage.steady("other"), vertical=vpas, controls=Knobs())


async def test_every_address_gives_a_page(tab, vpas):
    """`#/?kind=vpa` left an empty page and a TypeError in the console."""
    app = page_of(vpas)
    broken = {}
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        for address in OVERVIEWS + OTHERS:
            # Each one is opened by a page that is drawn, which a new address of this kind must not break.
            await tab.run(f"location.hash = {json.dumps(address)}")
            await tab.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            complaints = [text for text in tab.complaints if "404" not in text]
            if complaints:
                broken[address] = complaints[0].splitlines()[0]
                await tab.run("location.reload()")
            tab.complaints.clear()
            await tab.run("location.hash = '#/'")
            await tab.until(LIST)
    assert broken == {}


@pytest.mark.parametrize(
    "address", ["#/?kind=vpa", "#/?sort=constructor", "#/hpa/shop/%", "#/?page=%&state=x"]
)
async def test_a_page_can_start_at_such_an_address(tab, vpas, address):
    app = page_of(vpas)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.open(f"http://127.0.0.1:{port}/?again{address}")
        await tab.until(DRAWN)
        tab.complaints[:] = [text for text in tab.complaints if "404" not in text]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        pytest.param("kind=vpa", ["base", "lead"], id="the short name of a kind chooses it"),
        pytest.param("kind=hpa", ["other", "web"], id="as that of the other kind does"),
        pytest.param("kind=nonsense", ["other", "web"], id="an unknown kind is as none"),
        pytest.param("state=nonsense", ["other", "web"], id="an unknown state is as none"),
        pytest.param("sort=nonsense", ["other", "web"], id="an unknown order is as none"),
        pytest.param("page=99", ["other", "web"], id="the last page stands for those behind it"),
        pytest.param("page=-3", ["other", "web"], id="the first page stands for those before it"),
    ],
)
async def test_what_an_address_does_not_say_clearly_is_left_out(tab, vpas, query, shown):
    app = page_of(vpas)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.run(f"location.hash = {json.dumps(f'#/?{query}')}")
        names = "[...document.querySelectorAll('.list .name a')].map((link) => link.innerText).sort().join()"
        await tab.until(f"{names} === {json.dumps(','.join(shown))}")


async def test_a_namespace_without_autoscalers_is_named_and_can_be_cleared(tab, vpas):
    """The list of namespaces showed an empty choice."""
    app = page_of(vpas)
    async with serving(app) as port:
        await tab.open(app.url(port))
        await tab.until(LIST)
        await tab.run("location.hash = '#/?namespace=gone'")
        await tab.until(has(".empty", "Nothing fits these filters"))
        chosen = "[...document.querySelectorAll('.filters select')][0].selectedOptions[0]?.innerText"
        assert await tab.run(chosen) == "gone"
        await tab.click(".empty button")
        await tab.until(LIST)
