"""A release has the same bytes every time, and says what is in it."""

import importlib.util
import io
import marshal
import re
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tools.release import __main__ as release
from tools.release import image
from tools.release.archives import Entry, compressed, digest, directory, files_below, symbolic_link, tar
from tools.release.bytecode import VERSION, bytecode
from tools.release.debian import LOCK, PACKAGES, read_lock
from tools.release.image import _settings
from tools.release.version import _PLACES, ROOT, ReleaseError, close_changelog, epoch, notes, set_version
from trimtab.install import default_values

OPEN = "# Changelog\n\n## Unreleased\n\n### Added\n- a\n\n### Fixed\n- b\n\n## 0.0.9 - 2026-01-02\n\n### Added\n- old\n"


def test_the_unreleased_lines_go_under_the_version():
    closed = close_changelog(OPEN, "0.1.0", "2026-11-18")
    assert closed.startswith("# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-11-18\n\n### Added\n- a\n")
    assert notes(closed, "0.1.0") == "### Added\n- a\n\n### Fixed\n- b\n"
    assert epoch(closed, "0.1.0") == int(datetime(2026, 11, 18, tzinfo=UTC).timestamp())
    assert close_changelog(closed, "0.1.0", "2027-01-01") == closed, "a second build keeps the date"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OPEN.replace("### Added\n- a\n\n### Fixed\n- b\n", ""), "nothing under ## Unreleased"),
        (OPEN.replace("### Fixed\n- b", "### Fixes\n- b"), "the sections must be"),
        (OPEN.replace("### Added\n- a", "### Security\n- a"), "in this order"),
    ],
)
def test_a_changelog_that_cannot_be_closed_is_named(text, words):
    with pytest.raises(ReleaseError, match=words):
        close_changelog(text, "0.1.0", "2026-11-18")


def test_our_own_changelog_can_be_closed():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert notes(close_changelog(text, "99.0.0", "2026-11-18"), "99.0.0")


@pytest.mark.parametrize("version", ["1", "v1.2.3", "1.2", "1.2.3.4", "01.2.3", "1.2.3 "])
def test_a_version_that_is_none_changes_nothing(version):
    before = {name: (ROOT / name).read_text() for name in _PLACES}
    with pytest.raises(ReleaseError, match=r"1\.2\.3"):
        set_version(version)
    assert {name: (ROOT / name).read_text() for name in _PLACES} == before


@pytest.mark.parametrize("name", _PLACES)
def test_every_place_of_the_version_is_found(name):
    assert re.search(_PLACES[name], (ROOT / name).read_text())


def test_archives_do_not_depend_on_order_time_or_owner(tmp_path):
    entries = [Entry("b", b"2"), directory("a"), symbolic_link("c", "b")]
    assert compressed(tar(entries, 7)) == compressed(tar(reversed(entries), 7))
    with tarfile.open(fileobj=io.BytesIO(tar(entries, 7))) as archive:
        assert [(member.name, member.mtime, member.uid, member.uname) for member in archive] == [
            (name, 7, 0, "") for name in "abc"
        ]
    for name in ("one", "two"):
        (tmp_path / name / "__pycache__").mkdir(parents=True)
        (tmp_path / name / "x").write_text("x")
        (tmp_path / name / "__pycache__" / f"{name}.pyc").write_text(name)
    assert files_below(tmp_path / "one", "at") == files_below(tmp_path / "two", "at")


def test_every_package_of_the_image_is_pinned_by_its_digest():
    packages = read_lock(LOCK.read_text())
    assert [package.name for package in packages] == list(PACKAGES)
    assert all(re.fullmatch("[0-9a-f]{64}", package.sha256) for package in packages)


def test_the_image_runs_as_the_user_of_the_chart():
    wanted = default_values()["podSecurityContext"]
    assert _settings("1.0.0")["User"] == f"{wanted['runAsUser']}:{wanted['runAsGroup']}"
    assert _settings("1.0.0")["Entrypoint"] == ["trimtab"]


def test_a_published_chart_names_its_image_by_digest(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "DIST", tmp_path)
    monkeypatch.setenv("TRIMTAB_IMAGE", "ghcr.io/example/trimtab")
    monkeypatch.setenv("TRIMTAB_REPOSITORY_URL", "https://github.com/example/trimtab")
    (tmp_path / "image.digest").write_text(f"sha256:{'0a' * 32}\n")
    release._chart("1.2.3", 0)
    first = digest((tmp_path / "trimtab-1.2.3.tgz").read_bytes())
    release._chart("1.2.3", 0)
    assert digest((tmp_path / "trimtab-1.2.3.tgz").read_bytes()) == first
    with tarfile.open(tmp_path / "trimtab-1.2.3.tgz") as archive:
        archive.extractall(tmp_path, filter="data")
        assert "trimtab/artifacthub-repo.yml" not in archive.getnames()
    values, chart = (
        yaml.safe_load((tmp_path / "trimtab" / name).read_text()) for name in ("values.yaml", "Chart.yaml")
    )
    assert values["image"]["repository"] == "ghcr.io/example/trimtab"
    assert values["image"]["digest"] == f"sha256:{'0a' * 32}"
    assert chart["icon"] == "https://github.com/example/trimtab/raw/v1.2.3/charts/trimtab/icon.svg"


def test_the_workflow_publishes_with_short_lived_rights_only():
    workflow = yaml.safe_load(Path(ROOT, ".github/workflows/release.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    text = Path(ROOT, ".github/workflows/release.yml").read_text()
    assert set(re.findall(r"secrets\.(\w+)", text)) == {"GITHUB_TOKEN"}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + "0" * 40))


@pytest.mark.parametrize("with_image", [True, False])
def test_a_release_says_each_step_before_it_begins(with_image, tmp_path, monkeypatch, capsys):
    """`make release` printed nothing for 50 seconds."""
    changelog, said = tmp_path / "CHANGELOG.md", {}
    changelog.write_text(OPEN)
    monkeypatch.setattr(release, "CHANGELOG", changelog)
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    for part in ("set_version", "_run", "_python", "_bills", "_image", "_chart", "_checksums"):
        monkeypatch.setattr(
            release, part, lambda *_, part=part, **__: said.update({part: capsys.readouterr().err})
        )
    release.build("0.1.0", "2026-11-18", with_image=with_image)
    assert ("_image" in said) is with_image
    assert said.pop("_run") == "", "the second of two modules in one step"
    for part, text in said.items():
        assert re.fullmatch(r"release: .+ \.\.\.\n", text), part
    assert "changelog of this clone are changed: commit them to publish" in capsys.readouterr().err


PACKAGES_FOLDER = "usr/local/lib/python3.11/dist-packages"


@pytest.mark.skipif(sys.version_info[:2] != VERSION, reason="the image has Python 3.11")
def test_the_image_has_bytecode_that_depends_on_nothing_but_the_modules(tmp_path):
    """Each start compiled all modules, 1.1 s long: no file of the image can be written."""
    names = ", ".join(f'"{letter}"' for letter in "abcdefghijklmnop")
    modules = [
        Entry(
            f"{PACKAGES_FOLDER}/rule/__init__.py", f"def is_vowel(x):\n    return x in {{{names}}}\n".encode()
        ),
        Entry(f"{PACKAGES_FOLDER}/rule/broken.py", b"print 'for Python 2'\n"),
        Entry(f"{PACKAGES_FOLDER}/rule/data.json", b"{}"),
        Entry("etc/conf.py", b"x = 1\n"),
    ]
    first, again = bytecode(modules), bytecode(reversed(modules))
    assert first == again
    (compiled,) = first
    assert compiled.name == f"{PACKAGES_FOLDER}/rule/__pycache__/__init__.cpython-311.pyc"
    assert compiled.content[:4] == importlib.util.MAGIC_NUMBER
    assert compiled.content[4:8] == (1).to_bytes(4, "little"), "a hash that is never compared with the source"
    assert marshal.loads(compiled.content[16:]).co_filename == f"/{PACKAGES_FOLDER}/rule/__init__.py"


@pytest.mark.skipif(sys.version_info[:2] != VERSION, reason="the image has Python 3.11")
def test_every_layer_of_packages_has_its_bytecode(tmp_path, monkeypatch):
    def install(target, *_what):
        (target / "rule").mkdir(parents=True)
        (target / "rule" / "__init__.py").write_text("x = 1\n")

    monkeypatch.setattr(image, "_install", install)
    for layer in image._python_layers(tmp_path / "wheel", 0):
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            assert f"{PACKAGES_FOLDER}/rule/__pycache__/__init__.cpython-311.pyc" in archive.getnames()
