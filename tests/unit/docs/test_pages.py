"""Pages of the documentation: their manifests are valid, their links lead somewhere, their commands exist."""

import re
import shlex
import textwrap
from pathlib import Path

import click
import pytest
import yaml

from trimtab.cli import cli
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.manifest import read_manifest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "decisions" not in path.parts)
GATES = FeatureGates.parse("AllAlpha=true,AllBeta=true")
KINDS = {"HorizontalPodAutoscaler", "VerticalPodAutoscaler", "VPAScope"}
MEANT_TO_BE_WRONG = {"commands.md"}
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")


def blocks(page, language):
    """Return the blocks of a language, those inside of lists too."""
    fenced = rf"^ *```{language}\n(.*?)^ *```"
    found = re.findall(fenced, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(text) for text in found]


def manifests():
    for page in PAGES:
        if page.name in MEANT_TO_BE_WRONG:
            continue
        for text in blocks(page, "yaml"):
            for number, document in enumerate(yaml.safe_load_all(text)):
                if isinstance(document, dict) and document.get("kind") in KINDS:
                    name = document["metadata"]["name"]
                    yield pytest.param(document, id=f"{page.stem}: {document['kind']} {name} {number}")


def commands():
    for page in (DOCS.parent / "README.md", *PAGES):
        for language in ("console", "sh"):
            for text in blocks(page, language):
                for line in text.replace("\\\n", " ").splitlines():
                    for part in re.split(r"[|;]|&&", line.removeprefix("$ ")):
                        words = shlex.split(part.strip(), comments=True) if "trimtab " in part else []
                        if words[:2] == ["kubectl", "trimtab"]:
                            words = words[1:]
                        if words[:1] == ["trimtab"]:
                            yield pytest.param(words[1:], id=f"{page.stem}: {' '.join(words)}")


@pytest.mark.parametrize("document", list(manifests()))
def test_a_manifest_is_valid(document):
    found = read_manifest(document, GATES)
    assert not found.errors


@pytest.mark.parametrize("words", list(commands()))
def test_a_command_has_the_options_it_is_shown_with(words):
    context = click.Context(cli)
    command = cli.get_command(context, words[0])
    assert command is not None
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
    given = {word.partition("=")[0] for word in words[1:] if word.startswith("-") and len(word) > 1}
    assert given <= options or isinstance(command, click.Group)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def test_the_index_names_every_page():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    assert {str(page.relative_to(DOCS)) for page in PAGES} - {"README.md"} <= set(LINK.findall(index))


def title_of(page):
    return next(line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# "))[2:]


def test_the_index_names_pages_by_their_titles():
    named = re.findall(r"\| \[(.+?)\]\(([^)]+)\) \|", (DOCS / "README.md").read_text(encoding="utf-8"))
    assert len(named) > len(PAGES) / 2
    assert {link: text for text, link in named} == {link: title_of(DOCS / link) for _, link in named}


@pytest.mark.parametrize(
    "page", [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.stem
)
def test_no_link_shows_the_name_of_a_page_for_its_title(page):
    assert re.findall(r"\[[\w./-]+\.md\]\([^)]*\.md", page.read_text(encoding="utf-8")) == []
