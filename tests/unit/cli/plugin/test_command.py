"""`trimtab plugin` lists, checks and starts plug-ins."""

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.plugin_packages import install, install_example
from trimtab.cli.examples import EXAMPLES
from trimtab.cli.plugin.command import plugin
from trimtab.cli.plugin.skeleton import KINDS


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which packages are found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(plugin, arguments)


def test_list_shows_what_is_installed_and_imports_nothing(packages: Path):
    install_example(packages, "not-draining")
    install(packages, "not_imported", "1 / 0", group="trimtab.estimators", name="example.com/Broken")
    rows = [line.split() for line in run("list").output.splitlines()]
    assert ["example.com/NotDraining", "pod", "filter"] in [row[:3] for row in rows]
    assert ["example.com/Broken", "estimator"] in [row[:2] for row in rows]
    assert "not_imported" not in sys.modules


@pytest.mark.parametrize("word", ["not_draining", "example.com/NotDraining"])
def test_check_takes_a_module_or_a_name(packages: Path, word: str):
    install_example(packages, "not-draining")
    result = run("check", word)
    assert (result.exit_code, "passed: bounds" in result.output) == (0, True)


def test_check_gives_a_policy_its_parameters(packages: Path):
    install_example(packages, "step-plan")
    assert "raised KeyError: 'metric'" in run("check", "step_plan").output
    good = '{"metric": "requests", "steps": [{"above": 0, "pods": 1, "per": 10}]}'
    assert run("check", "step_plan", "--parameters", good).exit_code == 0
    assert "is no JSON" in run("check", "step_plan", "--parameters", "{").output


def test_check_runs_the_properties_of_an_estimator(packages: Path):
    install_example(packages, "weekday-peak")
    assert "passed: bounds, order, determinism" in run("check", "weekday_peak").output


def test_check_asks_a_metric_source_for_the_metrics_that_are_named(packages: Path):
    code = (
        "from trimtab.plugins import DeclinedError, MetricValue\n"
        "async def plugin(seen):\n"
        "    if seen.metric == 'jobs' and 'queue' in seen.labels:\n"
        "        return [MetricValue(value=seen.parameters['jobs'], labels=seen.labels)]\n"
        "    raise DeclinedError('no jobs')\n"
    )
    install(packages, "jobs_source", code, group="trimtab.metric_sources", name="example.com/jobs")
    assert "but no value: name a metric with --metric" in run("check", "jobs_source").output
    asked = ("check", "jobs_source", "--metric", "jobs", "--parameters", '{"jobs": 3}')
    assert "values: it declines to answer" in run(*asked).output
    result = run(*asked, "--label", "queue=orders")
    assert (result.exit_code, "and values of jobs" in result.output) == (0, True), result.output
    assert "is not of the form NAME=VALUE" in run(*asked, "--label", "queue").output


def test_check_fails_for_a_plugin_that_ends_the_program_anywhere(packages: Path):
    code = (
        "import sys\nclass Plugin:\n    looks = 0\n    def __call__(self, seen): return {}\n    @property\n"
        "    def __trimtab_plugin__(self):\n        Plugin.looks += 1\n        if Plugin.looks > 2: sys.exit(0)\n"
        "plugin = Plugin()\n"
    )
    install(packages, "ending_filter", code, group="trimtab.pod_filters", name="example.com/Ending")
    result = run("check", "example.com/Ending")
    assert (result.exit_code, "failed: it raised SystemExit: 0" in result.output) == (1, True)


def test_check_says_what_is_wrong(packages: Path):
    code = "def plugin(seen):\n    return {'other': 'why'}\n"
    install(packages, "wrong_filter", code, group="trimtab.pod_filters", name="example.com/Wrong")
    result = run("check", "wrong_filter")
    assert result.exit_code != 0
    assert "pod filter example.com/Wrong: failed: bounds: it returned 'other'" in result.output
    assert "no installed package has a plug-in nothing" in run("check", "nothing").output


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_passes_its_own_tests_and_its_backtest(kind: str, tmp_path: Path):
    folder = tmp_path / "new"
    result = run("new", kind, "example.com/MyRule", "--folder", str(folder))
    assert result.exit_code == 0, result.output
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    (group,) = project["entry-points"]
    assert project["entry-points"][group] == {"example.com/MyRule": "my_rule:my_rule_plugin"}
    info = folder / "my_rule-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-rule\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nexample.com/MyRule = my_rule:my_rule_plugin\n")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir=.",
        ".",
    ]
    programs = [tests]
    if (folder / "backtest.py").exists():
        programs.append([sys.executable, "backtest.py"])
    for program in programs:
        done = subprocess.run(
            program, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_new_refuses_a_name_without_a_domain_and_a_folder_in_use(tmp_path: Path):
    assert "a domain and a name" in run("new", "pod-filter", "MyRule").output
    (tmp_path / "file").write_text("")
    used = run("new", "pod-filter", "example.com/MyRule", "--folder", str(tmp_path))
    assert "exists and is not empty" in used.output


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("class", "its module would be class, which is a keyword of Python"),
        ("json", "its module would be json, which is one of Python's standard library"),
        ("JSON", "its module would be json"),
        ("backtest", "its module would be backtest.py, which is another file of such a package"),
        ("conftest", "its module would be conftest.py, which is another file of such a package"),
        ("trimtab", "its package would be trimtab, and trimtab "),
        ("Trimtab", "its package would be trimtab, and trimtab "),
        ("msgspec", "its package would be msgspec, and msgspec "),
        ("yaml", "its module would be yaml, which exists already: "),
        ("not-draining", "its module would be not_draining, which exists already: "),
        ("draining_module", "its module would be draining_module, which exists already: "),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_new_refuses_a_name_whose_module_or_package_exists(kind, name, words, packages, monkeypatch):
    """The package could not be imported, or hid the other one: `trimtab` itself, or `json`."""
    install_example(packages, "not-draining")
    (packages / "draining_module.py").write_text("1 / 0")
    monkeypatch.chdir(packages)
    before = sorted(packages.iterdir())
    result = run("new", kind, f"example.com/{name}")
    assert result.exit_code == 2, result.output
    assert f"example.com/{name} cannot be used: {words}" in result.output
    assert sorted(packages.iterdir()) == before, "nothing is written"
    assert run("new", kind, f"example.com/my-{name}").exit_code == 0, "the name of the hint works"


@pytest.mark.parametrize(
    "example",
    EXAMPLES["plugin"] + EXAMPLES["plugin list"] + EXAMPLES["plugin check"] + EXAMPLES["plugin new"],
)
def test_the_examples_of_the_help_work_as_they_are_typed(example, packages: Path, monkeypatch):
    """One named a plug-in that nobody has, and one made its plug-in raise."""
    for name in ("not-draining", "step-plan", "sql-queue"):
        install_example(packages, name)
    monkeypatch.chdir(packages)
    words = shlex.split(example.line)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    assert words[:2] == ["trimtab", "plugin"]
    result = run(*words[2:])
    assert result.exit_code == 0, result.output
    assert "failed" not in result.output


def test_a_misspelt_name_gets_the_one_that_is_installed(packages: Path):
    install_example(packages, "not-draining")
    for name in ("example.com/notdraining", "not-draining", "NotDrainng"):
        assert "did you mean example.com/NotDraining?" in run("check", name).output


def test_a_narrow_terminal_breaks_no_name(packages: Path):
    """Names were folded at 17 characters, where nobody can copy them."""
    name = install(packages, "long", "", group="trimtab.estimators", name=f"example.com/{'a' * 60}")
    assert name in CliRunner(env={"COLUMNS": "80"}).invoke(plugin, ["list"]).output


def filter_that(packages: Path, code: str) -> Result:
    """Check a pod filter of this code, which begins in line 2."""
    lines = f"from trimtab.plugins import CannotFilterError\n{code}"
    install(packages, "odd_filter", lines, group="trimtab.pod_filters", name="example.com/Odd")
    return run("check", "odd_filter")


def test_check_fails_for_a_filter_that_always_declines(packages: Path):
    """It passed, although not one answer could be checked."""
    result = filter_that(packages, "def plugin(seen):\n    raise CannotFilterError('no luck')\n")
    assert result.exit_code == 1
    assert "failed: it declines all of the 200 inputs, so no answer could be checked" in result.output
    assert "first: no luck (odd_filter.py, line 3)" in result.output


def test_check_warns_of_a_filter_that_leaves_out_all_pods(packages: Path):
    result = filter_that(packages, "def plugin(seen):\n    return {pod.name: 'no' for pod in seen.pods}\n")
    assert (result.exit_code, "passed: bounds" in result.output) == (0, True)
    assert "warning: it leaves out every pod of every input" in result.output
    assert "(odd_filter.py, line 2)" in result.output


def test_check_names_the_line_of_the_plugin_that_raised(packages: Path):
    """Its file and line were in the log of the operator only."""
    code = "import json\ndef plugin(seen):\n    return json.loads('{')\n"
    assert "raised JSONDecodeError: " in filter_that(packages, code).output
    assert "(odd_filter.py, line 4), for PodFilterInput" in filter_that(packages, code).output
    result = filter_that(packages, "\nimport json\n1 / 0\n")
    assert "cannot be imported: ZeroDivisionError: division by zero (odd_filter.py, line 4)" in result.output


SLEEPY = "import time\ndef plugin(seen):\n    time.sleep(60)\n    return {}\n"


def test_check_ends_a_filter_that_sleeps_and_shows_that_it_runs(
    packages: Path, monkeypatch: pytest.MonkeyPatch
):
    """It was silent for minutes."""
    shown: list[str] = []

    @contextmanager
    def waiting(what: str) -> Iterator[None]:
        shown.append(what)
        yield

    monkeypatch.setattr("trimtab.cli.plugin.command.waiting", waiting)
    result = filter_that(packages, SLEEPY)
    assert (result.exit_code, shown) == (1, ["checking pod filter example.com/Odd"])
    assert "failed: time: a call did not end within 1 s" in result.output
