"""The documentation site: every link leads somewhere, nothing comes from elsewhere, and pages read as on GitHub."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

from tests.dashboard.browser import NAMES, chromium, program, tab

pytest.importorskip("material", reason="mkdocs-material is not installed: make .venv/.dev")

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
SHIM = ROOT / "tools/docs_site/theme/assets/javascripts/iframe-worker.js"
COUNTED = {"h1", "h2", "h3", "h4", "ul", "ol", "li", "tr", "td", "th", "img", "strong", "em"}


class Reader(HTMLParser):
    """Collects what a page links to, what it loads, what can be linked to in it, and the elements of its text."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.names = [], [], set()
        self.elements: Counter[str] = Counter()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names |= {given["id"]} if "id" in given else set()
        self.elements[tag] += tag in COUNTED
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in {"script", "img"} and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") not in {"prev", "next"}:
            self.loaded.append(given["href"])


def build(project, folder):
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=project,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Build the site as `make docs` does. Return where it is."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def site(folder):
    """Return every page of the site, read."""
    paths = [path for path in folder.rglob("*.html") if path.name != "404.html"]
    return {path: Reader(path.read_text(encoding="utf-8")) for path in paths}


def test_every_link_leads_to_a_file_and_to_a_heading_that_is_there(site):
    dead = []
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            names = site[there].names if there in site else set()
            if not there.is_file() or (parts.fragment and unquote(parts.fragment) not in names):
                dead.append(f"{path.name}: {link}")
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(site):
    for path, page in site.items():
        for link in page.loaded:
            assert not urlsplit(link).scheme, f"{path.name} loads {link}"
            assert not link.startswith("/"), f"{path.name} needs a server for {link}"
            assert (path.parent / unquote(link)).is_file(), f"{path.name} loads {link}"


def test_every_page_is_in_the_navigation(site, folder):
    """mkdocs warns of a page that is in no section of docs/README.md, and --strict fails."""
    listed = set(site[folder / "index.html"].links)
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    assert {page.replace("README.html", "index.html") for page in pages} <= listed | {"index.html", "."}


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda page: page.stem,
)
def test_a_page_has_the_same_parts_on_the_site_and_on_github(page, site, folder):
    """Lists and tables that CommonMark reads otherwise than python-markdown have lost their form before."""
    inside = page.relative_to(DOCS) if page.is_relative_to(DOCS) else Path("project") / page.name
    path = (folder / inside).with_suffix(".html")
    path = path.with_name("index.html") if path.name == "README.html" else path
    text = path.read_text(encoding="utf-8")
    (article,) = re.findall(r"<article.*?>(.*)</article>", text, re.DOTALL)
    github = MarkdownIt("commonmark", {"html": True}).enable("table").render(page.read_text(encoding="utf-8"))
    assert Reader(article).elements == Reader(github).elements


def test_search_without_a_server_uses_the_reviewed_shim(site):
    sum_of_shim = hashlib.sha256(SHIM.read_bytes()).hexdigest()
    assert sum_of_shim == "e8e412dbcfea9b7e31b5ffa288d7b6035915e714c542f4176a0cdbe262fc9609"
    for path, page in site.items():
        assert any(link.endswith("iframe-worker.js") for link in page.loaded), path


def test_a_file_that_a_page_names_is_shown_as_it_is_written(site, folder):
    shown = (folder / "source/examples/tolerance.yaml.html").read_text(encoding="utf-8")
    assert "HorizontalPodAutoscaler" in shown
    assert not [path for path in site if "/source/docs/" in str(path)]


def test_links_to_nothing_fail_the_build_and_are_named(tmp_path):
    links = ("missing.md", "index.md#missing", "/index.md")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Title\n\n" + "".join(f"[x]({link})\n" for link in links))
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT}/mkdocs.yml\nhooks: []\ntheme: {{custom_dir: {ROOT}/tools/docs_site/theme}}\n"
    )
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode == 1
    assert [link for link in links if f"'{link}'" not in built.stderr] == []


@pytest.mark.skipif(program() is None, reason=f"no browser: none of {', '.join(NAMES)} is installed")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # Chromium's start, as in tests/dashboard
async def test_search_and_copy_work_without_a_server(folder, tmp_path):
    async with chromium(tmp_path / "profile") as address, tab(address) as page:
        await page.size(1280, 900)
        await page.open((folder / "explain-a-decision.html").as_uri())
        await page.until("document.querySelector('.md-search__input')")
        await page.run(LOADED)  # before it the theme does not notice that the field has the focus
        await page.click(".md-search__input")
        await page.send("Input.insertText", text="tolerance")
        # The theme reads the field whenever a key is released, once its index is loaded.
        await page.until(
            "!document.querySelector('.md-search-result__meta').innerText.includes('Initializing')"
        )
        await page.run("document.querySelector('.md-search__input').dispatchEvent(new Event('keyup'))")
        await page.until("document.querySelector('.md-search-result__link')")
        first = await page.run("document.querySelector('.md-search-result__link').pathname")
        assert first.endswith("/tune-tolerance.html")
        copied = await page.run(COPIED)
        assert copied.startswith("trimtab explain hpa/shop-by-label -n same-labels")
        assert "AtMaximum" not in copied
        assert page.complaints == []


LOADED = "new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))"
"""Wait until the scripts of the page have run."""

COPIED = """(() => {
  const code = document.querySelector(".highlight code");
  code.setAttribute("data-md-copying", "");
  return code.innerText.trim();
})()"""
"""What the copy button of the first block takes, as the theme reads it."""
