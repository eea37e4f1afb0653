"""The documentation as a site: every link leads somewhere, nothing comes from elsewhere, every page is in the list."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tools.site.build import DeadLinkError, build, rendered
from tools.site.pages import DOCS, Page


class Reader(HTMLParser):
    """Collects what a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.names = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.names.add(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in {"script", "img"} and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link":
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return every page of the site, read."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    return {path.resolve(): Reader(path.read_text()) for path in build(folder)}


def test_every_link_leads_to_a_file_and_to_a_heading_that_is_there(site):
    dead = []
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not there.is_file() or (parts.fragment and unquote(parts.fragment) not in site[there].names):
                dead.append(f"{path.name}: {link}")
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(site):
    for path, page in site.items():
        for link in page.loaded:
            assert not urlsplit(link).scheme, f"{path.name} loads {link}"
            assert not link.startswith("/"), f"{path.name} needs a server for {link}"
            assert (path.parent / unquote(link)).is_file(), f"{path.name} loads {link}"


def test_every_page_by_task_is_in_the_list_of_pages(site):
    index = next(
        page for path, page in site.items() if path.name == "index.html" and path.parent.name == "site"
    )
    listed = {link.partition("#")[0] for link in index.links}
    pages = {f"{path.stem}.html" for path in DOCS.glob("*.md") if path.stem != "README"}
    assert pages <= listed


def test_a_link_to_nothing_is_named_with_its_page():
    class Wrong(Page):
        def read(self):
            return "# T\n[x](missing.md)"

    with pytest.raises(
        DeadLinkError, match=r"docs/a.md names 'missing.md', and there is no file docs/missing.md"
    ):
        rendered(Wrong("docs/a.md", "a.html"))


def test_html_in_a_document_is_shown_and_not_run():
    class Wrong(Page):
        def read(self):
            return "# T\n<script>alert(1)</script>"

    assert "<script>" not in rendered(Wrong("docs/a.md", "a.html")).body


def test_every_task_has_its_page():
    tasks = {
        "getting-started", "count-only-my-pods", "tune-tolerance", "to-zero-and-back", "pick-one-series", "vertical",
        "explain-a-decision", "move-from-native-hpa", "move-from-upstream-vpa", "move-from-keda", "roll-back",
        "known-limits", "architecture", "troubleshooting",
    }  # fmt: skip
    assert tasks <= {path.stem for path in Path(DOCS).glob("*.md")}
