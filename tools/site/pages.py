"""Which pages there are, where each goes, and how one links to another."""

import posixpath
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROJECT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")


@dataclass(frozen=True)
class Page:
    """A file of the repository and its place in the site, both relative with slashes."""

    source: str
    place: str

    @property
    def is_text(self) -> bool:
        """Return whether it is a document; anything else is shown as it is written."""
        return self.source.endswith(".md")

    def read(self) -> str:
        """Return the file's text."""
        return (ROOT / self.source).read_text(encoding="utf-8")


def documents() -> list[Page]:
    """Return every document: docs/, and the few files that stand beside it."""
    found = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))
    return [page_of(source) for source in (*found, *PROJECT)]


def page_of(source: str) -> Page:
    """Return where a file of the repository goes."""
    if source == "docs/README.md":
        return Page(source, "index.html")
    if source.startswith("docs/") and source.endswith(".md"):
        inside = source.removeprefix("docs/").removesuffix(".md")
        return Page(
            source, inside.removesuffix("README") + ("index.html" if inside.endswith("README") else ".html")
        )
    if source.endswith(".md"):
        return Page(source, f"project/{source.removesuffix('.md').lower()}.html")
    return Page(source, f"source/{source}.html")


def target_of(page: Page, link: str) -> str:
    """Return the repository's file that a page's relative link names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page.source), link))


def way(here: str, there: str) -> str:
    """Return how to get from one place of the site to another."""
    return posixpath.relpath(there, posixpath.dirname(here) or ".")
