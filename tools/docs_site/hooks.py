"""Hooks of mkdocs: navigation from `docs/README.md`, and pages for linked files outside of `docs/`."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
ICON = ROOT / "src/trimtab/dashboard/static/icon.svg"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)(?=[)#])")
"""The path of a link within the repository, without its anchor."""
GENERATED = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)
"""The comment above a generated page. It is for editors, and mkdocs takes a page's title from its first line."""
ABOVE_A_LIST = re.compile(r"^([^\s|-].*\n)(?=- )", re.MULTILINE)
LONGEST_LISTING = 200_000
"""Characters of a listed file. The rest is cut off."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation to the sections and links of docs/README.md, in its order."""
    config.nav = [{"Home": "README.md"}, *_navigation()]
    config.edit_uri = "edit/main/docs/" if config.repo_url else None
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the icon, and a page for each file outside of docs/ that a page links to."""
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(ICON)))
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        for target in _targets(waiting.pop()) - seen:
            seen.add(target)
            if not target.startswith("docs/"):
                files.append(File.generated(config, page_of(target), content=_content(target)))
                waiting += [target] if target.endswith(".md") else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page whose links into and out of docs/ lead to pages of the site."""
    here = page.file.src_uri
    markdown = _separate_lists(GENERATED.sub("", markdown))
    if here.startswith("source/"):
        return markdown
    source = here.removeprefix("project/") if here.startswith("project/") else f"docs/{here}"

    def lead(link: re.Match[str]) -> str:
        target = _target(source, link[1])
        if (source.startswith("docs/") and target.startswith("docs/")) or not (ROOT / target).is_file():
            return link[1]  # mkdocs checks it
        return posixpath.relpath(page_of(target), posixpath.dirname(here) or ".")

    return LINK.sub(lead, markdown)


def page_of(source: str) -> str:
    """Return the page of a file of the repository, as mkdocs names pages."""
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    shown = re.sub(r"(?<![^/])\.", "", source)  # mkdocs leaves out names that begin with a dot
    return f"project/{shown}" if source.endswith(".md") else f"source/{shown}.md"


def _separate_lists(markdown: str) -> str:
    """Return a page with an empty line above each list, which GitHub does not need and python-markdown does."""
    parts = re.split(r"^(```.*?^```)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part[:3] == "```" else ABOVE_A_LIST.sub(r"\1\n", part) for part in parts)


def _navigation() -> Iterator[dict[str, Any]]:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for section in index.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        pages = [_target("docs/README.md", path) for path in LINK.findall(text)]
        yield {title: [_decisions() if "decisions" in path else page_of(path) for path in pages]}


def _decisions() -> dict[str, list[str]]:
    """Return the section of the decisions: its index, and its pages in the order of the index."""
    index = ROOT / "docs/decisions/README.md"
    names = LINK.findall(index.read_text(encoding="utf-8"))
    pages = dict.fromkeys(name for name in names if (index.parent / name).is_file() and "/" not in name)
    return {"Decisions": ["decisions/README.md", *(f"decisions/{name}" for name in pages)]}


def _targets(source: str) -> set[str]:
    """Return the files of the repository that a document links to."""
    text = (ROOT / source).read_text(encoding="utf-8")
    targets = {_target(source, path) for path in LINK.findall(text)}
    return {target for target in targets if (ROOT / target).is_file()}


def _target(source: str, path: str) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    return f"{target}/README.md" if (ROOT / target).is_dir() else target


def _content(source: str) -> str:
    text = (ROOT / source).read_text(encoding="utf-8")
    if source.endswith(".md"):
        return text
    fence = max((run for run in re.findall(r"`{3,}", text)), key=len, default="``") + "`"
    language = Path(source).suffix.removeprefix(".") or "text"
    return f"---\nsearch:\n  exclude: true\n---\n# {source}\n\n{fence}{language}\n{text[:LONGEST_LISTING]}\n{fence}\n"
