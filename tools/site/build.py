"""Turns documents into pages, and pages into files."""

import html
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.site.pages import DOCS, ROOT, Page, documents, page_of, target_of, way

ASSETS = Path(__file__).parent / "assets"
ICON = ROOT / "src/trimtab/dashboard/static/icon.svg"
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#")
_MOST_SOURCE = 200_000


class DeadLinkError(Exception):
    """A page names something that is not there."""


@dataclass
class Made:
    """One page on its way: its HTML, its headings, and the files it names."""

    page: Page
    title: str = ""
    body: str = ""
    headings: list[tuple[str, str]] = field(default_factory=list)
    named: set[str] = field(default_factory=set)


def build(directory: Path) -> list[Path]:
    """Write the whole site into a directory, replacing what was there; return the pages."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    made = [rendered(page) for page in documents()]
    known = {one.page.source for one in made}
    shown = sorted(
        {name for one in made for name in one.named if name not in known and not _is_picture(name)}
    )
    made += [listing(page_of(name)) for name in shown]
    for one in made:
        _write(directory / one.page.place, whole(one))
    for picture in sorted(DOCS.glob("images/*")):
        _copy(picture, directory / "images" / picture.name)
    for asset in (*ASSETS.iterdir(), ICON):
        _copy(asset, directory / "assets" / asset.name)
    _write(directory / "assets/index.js", f"window.pages = {json.dumps(list(entries(made)))};\n")
    return [directory / one.page.place for one in made]


def rendered(page: Page) -> Made:
    """Render one document."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    made = Made(page, title=page.source.rpartition("/")[2])
    if not page.is_text:
        return listing(page)
    # The generated pages begin with a comment that says so; it is for editors, not for readers.
    tokens = reader.parse(re.sub(r"\A<!--.*?-->\s*", "", page.read(), flags=re.DOTALL))
    _anchor(tokens, made)
    for token in _inside(tokens):
        for name in ("href", "src"):
            link = token.attrs.get(name)
            if isinstance(link, str):
                token.attrs[name] = _lead(made, link)
    made.body = str(reader.renderer.render(tokens, reader.options, {}))
    made.body = made.body.replace("<table>", '<div class="table"><table>').replace(
        "</table>", "</table></div>"
    )
    return made


def listing(page: Page) -> Made:
    """Show a file as it is written."""
    text = html.escape(page.read()[:_MOST_SOURCE])
    return Made(page, page.source, f"<h1>{html.escape(page.source)}</h1>\n<pre><code>{text}</code></pre>\n")


def _inside(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _inside(token.children or [])


def _anchor(tokens: list[Token], made: Made) -> None:
    """Give every heading a name to link to, as GitHub names them, and take the first as the title."""
    seen: dict[str, int] = {}
    for token, text in pairwise(tokens):
        if token.type != "heading_open":
            continue
        words = "".join(
            child.content for child in text.children or [] if child.type in {"text", "code_inline"}
        )
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        name = f"{name}-{seen[name]}" if seen[name] else name
        token.attrSet("id", name)
        if token.tag == "h1" and not made.headings:
            made.title = words
        made.headings.append((name, words))


def _lead(made: Made, link: str) -> str:
    """Return a link of the repository as one of the site."""
    if _OUTSIDE.match(link):
        return link
    path, mark, anchor = link.partition("#")
    source = target_of(made.page, path)
    if (ROOT / source).is_dir():
        source = f"{source}/README.md" if (ROOT / source / "README.md").exists() else source
    if not (ROOT / source).is_file():
        raise DeadLinkError(f"{made.page.source} names {link!r}, and there is no file {source}")
    made.named.add(source)
    there = source.removeprefix("docs/") if _is_picture(source) else page_of(source).place
    return way(made.page.place, there) + mark + anchor


def _is_picture(source: str) -> bool:
    return source.endswith((".png", ".svg")) and source.startswith("docs/images/")


def whole(made: Made) -> str:
    """Put a page into its frame."""
    here = made.page.place
    top = way(here, "index.html")
    values = {
        "title": html.escape(made.title),
        "assets": way(here, "assets"),
        "home": top,
        "root": way(here, ".") + "/",
        "navigation": navigation(here),
        "body": made.body,
    }
    frame = (ASSETS.parent / "frame.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], frame)


def navigation(here: str) -> str:
    """Return the list of pages: the sections and links of docs/README.md, in its order and its words."""
    parts: list[str] = []
    for line in (DOCS / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            parts.append(f"{'</ul>' if parts else ''}<h2>{html.escape(line[3:])}</h2><ul>")
        elif parts:
            parts += [_entry(here, *one) for one in _links(line)]
    return "\n".join([*parts, "</ul>"])


def _links(line: str) -> Iterator[tuple[str, str]]:
    row = re.match(r"\| ([^|]+) \| \[[^]]*\]\(([^)]+)\)", line)
    if row:
        yield row[1], row[2]
    elif line.startswith("- "):
        yield from re.findall(r"\[([^]]+)\]\(([^)]+\.md)\)", line)


def _entry(here: str, words: str, link: str) -> str:
    there = page_of(f"docs/{link}").place
    mark = ' aria-current="page"' if there == here else ""
    return f'<li><a href="{way(here, there)}"{mark}>{html.escape(words)}</a></li>'


def entries(made: list[Made]) -> Iterator[tuple[str, str, str]]:
    """Yield what can be searched for: page, heading, and where it is."""
    for one in made:
        if one.page.is_text:
            for name, words in one.headings:
                yield one.title, words, f"{one.page.place}#{name}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)
