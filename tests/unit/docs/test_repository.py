"""The files around the code: workflows call targets that exist, and every place names the same versions."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tools.badges import IMAGES, VERSIONS, badges, kubernetes, pythons

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(
    re.findall(r"^([a-z-]+):(?! export)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)
MAKE = re.compile(r"^\s*(?:- run: |run: |entry: |- |\$ )?(?:setsid nice -n 10 )?make ([a-z-]+)", re.MULTILINE)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [
        *(str(path.relative_to(ROOT)) for path in WORKFLOWS),
        ".ci/run",
        ".pre-commit-config.yaml",
        "CONTRIBUTING.md",
    ],
)
def test_every_target_that_is_called_exists(name):
    called = set(MAKE.findall(read(name)))
    assert called - TARGETS == set()
    assert called or "make" not in read(name)


def test_the_workflow_calls_what_ci_runs():
    assert set(MAKE.findall(read(".ci/run"))) <= set(MAKE.findall(read(".github/workflows/ci.yml")))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_pins_its_actions_and_limits_its_rights_and_time(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert "permissions" in workflow
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 120
        for step in job["steps"]:
            assert re.search(r"@[0-9a-f]{40}\Z", step.get("uses", f"@{'0' * 40}")), step


def test_every_place_names_the_same_versions():
    jobs = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]
    oldest = jobs["check"]["steps"][1]["with"]["python-version"]
    assert [oldest, *jobs["test"]["strategy"]["matrix"]["python"]] == pythons()
    assert sorted(re.findall(r"^\| (3\.\d+) \| yes", VERSIONS, re.MULTILINE)) == pythons()
    tried = {row["kubernetes"] for row in jobs["real"]["strategy"]["matrix"]["include"]}
    assert tried <= set(kubernetes())
    assert {kubernetes()[0], kubernetes()[-1]} <= tried
    assert f"Kubernetes {kubernetes()[0]} to {kubernetes()[-1]}" in read("docs/README.md")
    assert f"Python {pythons()[0]} to {pythons()[-1]}" in read("docs/README.md")


@pytest.mark.parametrize("name", sorted(badges()))
def test_a_badge_is_true(name):
    """Run `python -m tools.badges` if this fails."""
    assert (IMAGES / name).read_text(encoding="utf-8") == badges()[name]
    assert f"(docs/images/{name})" in read("README.md")


def test_issue_forms_ask_for_versions_and_have_fields_with_names_of_their_own():
    forms = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[0-9]*.yml"))
    assert len(forms) == 3
    for form in map(yaml.safe_load, map(Path.read_text, forms)):
        fields = [field["id"] for field in form["body"] if "id" in field]
        assert len(fields) == len(set(fields)) > 1
        assert "versions" in fields or form["labels"] == ["proposal"]


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a clone")
def test_what_make_up_writes_is_ignored_and_removed():
    """It holds the kubeconfig of an administrator."""
    ignored = subprocess.run(["git", "check-ignore", "-q", ".trimtab/kubeconfig"], cwd=ROOT, check=False)
    assert ignored.returncode == 0


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_clean_removes_whatever_git_ignores(tmp_path):
    """`.cache` of the site and the caches of tests, linters and Python stayed."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "kept.py").touch()
    for pattern in read(".gitignore").split():
        for folder in (tmp_path, tmp_path / "src" / "trimtab"):
            path = folder / pattern.strip("/").replace("*", "some")
            if pattern.startswith("/") or (folder != tmp_path and pattern not in ("__pycache__/", "*.pyc")):
                path = tmp_path / path.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(exist_ok=True) if pattern.endswith("/") else path.touch()
    subprocess.run(["make", "-s", "clean"], cwd=tmp_path, check=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"Makefile", "kept.py", "src", "src/trimtab"}


@pytest.mark.parametrize(
    ("name", "placeholder"),
    [
        (".github/CODEOWNERS", "@trimtab/maintainers"),
        ("charts/trimtab/artifacthub-repo.yml", "repositoryID"),
        ("charts/trimtab/Chart.yaml", "The Trimtab authors"),
        ("SECURITY.md", "private vulnerability report"),
    ],
)
def test_whatever_an_owner_has_to_set_is_on_the_page_of_releases(name, placeholder):
    """A team that does not exist was named without a word."""
    page = read("docs/releasing.md")
    assert placeholder in read(name)
    assert placeholder in page
