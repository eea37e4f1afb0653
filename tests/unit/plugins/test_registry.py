"""Plug-ins are found by their entry points, and only those that are named are imported."""

import sys
from pathlib import Path

import pytest

from trimtab.model.plugin_names import is_plugin_name
from trimtab.plugins.guard import Guards
from trimtab.plugins.kinds import PluginKind, declare
from trimtab.plugins.registry import (
    DuplicatePluginError,
    PluginError,
    PluginImportError,
    PluginNotFoundError,
    PluginShapeError,
    installed_plugins,
    load_plugins,
    load_usable_plugins,
    shape_problem,
)

FUNCTION = "def plugin(seen):\n    return {}\n"


class Packages:
    """A folder on the path into which packages with plug-ins are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self,
        module: str,
        code: str = FUNCTION,
        *,
        name: str = "example.com/Plugin",
        group: str = "trimtab.pod_filters",
        version: str = "1.2",
    ) -> None:
        """Install a package of one module with one plug-in."""
        (self.folder / f"{module}.py").write_text(code)
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:plugin\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    """Return a folder for packages that is searched first."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return Packages(tmp_path)


def test_a_named_plugin_has_name_kind_and_version_of_its_package(packages: Packages) -> None:
    packages.install("first_plugin")
    (plugin,) = load_plugins(["example.com/Plugin", " example.com/Plugin ", ""])
    assert str(plugin) == "pod filter example.com/Plugin 1.2"
    assert plugin.distribution == "first_plugin"
    assert plugin.call(object()) == {}


def test_a_plugin_that_is_not_named_is_listed_and_not_imported(packages: Packages) -> None:
    packages.install("quiet_plugin", "raise SystemExit('imported')")
    assert list(load_plugins([])) == []
    assert "example.com/Plugin" in [plugin.name for plugin in installed_plugins()]
    assert "quiet_plugin" not in sys.modules


def test_the_same_name_in_two_packages_is_an_error(packages: Packages) -> None:
    packages.install("one_plugin")
    packages.install("other_plugin", group="trimtab.estimators")
    with pytest.raises(
        DuplicatePluginError, match=r"other_plugin \(estimator\) and one_plugin \(pod filter\)"
    ):
        load_plugins(["example.com/Plugin"])


@pytest.mark.parametrize(
    ("module", "code", "group", "error", "words"),
    [
        pytest.param("m_raises", "1 / 0", None, PluginImportError, "cannot be imported: ZeroDivisionError"),
        pytest.param("m_missing", "", None, PluginImportError, "no attribute 'plugin'"),
        pytest.param("m_number", "plugin = 3", None, PluginShapeError, "is int, which cannot be called"),
        pytest.param("m_class", "class plugin: ...", None, PluginShapeError, "it is a class"),
        pytest.param("m_none", "def plugin(): ...", None, PluginShapeError, "must take one argument"),
        pytest.param("m_async", "async def plugin(seen): ...", None, PluginShapeError, "not be a coroutine"),
        pytest.param(
            "m_sync", FUNCTION, "trimtab.metric_sources", PluginShapeError, "must be a coroutine function"
        ),
        *(
            pytest.param(
                f"m_yields_{group}",
                "async def plugin(seen):\n    yield 1",
                f"trimtab.{group}",
                PluginShapeError,
                "it is an async generator; write return in place of yield",
            )
            for group in ("pod_filters", "replica_policies", "metric_sources", "estimators")
        ),
        pytest.param(
            "m_protocol",
            f"from trimtab.plugins.kinds import declare\n@declare(protocol=2)\n{FUNCTION}",
            None,
            PluginShapeError,
            "written for protocol 2 and this program has protocol 1",
        ),
        pytest.param(
            "m_budget",
            f"from trimtab.plugins.kinds import declare\n@declare(budget=60)\n{FUNCTION}",
            None,
            PluginShapeError,
            "its budget is 60 s; it may be up to 1 s",
        ),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_with_its_package_and_reason(
    packages: Packages, module: str, code: str, group: str | None, error: type[PluginError], words: str
) -> None:
    packages.install(module, code, group=group or "trimtab.pod_filters")
    with pytest.raises(error, match=words) as raised:
        load_plugins(["example.com/Plugin"])
    assert f"of {module} 1.2" in str(raised.value)


def test_an_unknown_name_is_answered_with_what_is_installed(packages: Packages) -> None:
    packages.install("known_plugin", name="example.com/Known")
    with pytest.raises(
        PluginNotFoundError, match=r"example\.com/Other is not installed; .*example\.com/Known \(pod filter\)"
    ):
        load_plugins(["example.com/Other"])


def test_a_program_goes_on_without_the_plugins_that_cannot_be_loaded(packages: Packages) -> None:
    packages.install("good_plugin", name="example.com/Good")
    packages.install("bad_plugin", "1 / 0", name="example.com/Bad")
    plugins = load_usable_plugins(["example.com/Bad", "example.com/Good", "example.com/None"])
    assert [plugin.name for plugin in plugins] == ["example.com/Good"]
    assert list(plugins.errors) == ["example.com/Bad", "example.com/None"]
    guards = Guards(plugins)
    failure = guards.not_loaded(PluginKind.POD_FILTER, "example.com/Bad")
    assert "pod filter example.com/Bad is not loaded: plug-in example.com/Bad of bad_plugin 1.2" in str(
        failure
    )
    other = guards.not_loaded(PluginKind.ESTIMATOR, "example.com/Other")
    assert str(other).endswith("is not loaded: install its package and name it in --plugins")


def test_a_name_without_a_domain_is_refused(packages: Packages) -> None:
    packages.install("plain_plugin", name="OwnerReference")
    with pytest.raises(PluginShapeError, match="a domain and a name"):
        load_plugins(["OwnerReference"])


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("example.com/NotDraining", True),
        ("a.b.example.com/x", True),
        ("example/NotDraining", False),
        ("example.com/", False),
        ("/NotDraining", False),
        ("Example.com/NotDraining", False),
        ("example.com/a/b", False),
        ("example.com/a b", False),
        ("example.com/a\n", False),
        (f"{'a.' * 130}com/x", False),
    ],
)
def test_a_name_is_a_domain_and_a_name(name: str, valid: bool) -> None:
    assert is_plugin_name(name) == valid


def test_an_instance_that_can_be_called_is_a_plugin() -> None:
    class Filter:
        def __call__(self, seen: object) -> dict[str, str]:
            return {}

    class Source:
        async def __call__(self, query: object) -> float:
            return 1.0

    assert shape_problem(Filter(), PluginKind.POD_FILTER) == ""
    assert shape_problem(declare(budget=0.5)(Source()), PluginKind.METRIC_SOURCE) == ""
    assert "must not" in shape_problem(Source(), PluginKind.ESTIMATOR)


def test_a_module_that_hangs_at_import_is_named_and_left_out(
    packages: Packages, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trimtab.plugins.registry.LONGEST_IMPORT", 0.05)
    packages.install("hanging_plugin", "import time\nfor _ in range(100): time.sleep(0.05)\n")
    with caplog.at_level("INFO"):
        plugins = load_usable_plugins(["example.com/Plugin"])
    assert "cannot be imported: it took longer than 0 s" in plugins.errors["example.com/Plugin"]
    begun, ended = (record.getMessage() for record in caplog.records)
    assert begun.startswith("importing plug-in example.com/Plugin of hanging_plugin 1.2")
    assert ended.startswith("plug-in not loaded")


FAILING = """import json

def limit():
    return json.loads("{nope")

LIMIT = limit()
"""


def test_the_log_of_a_failed_import_has_the_frames_of_the_plugin_and_no_other(
    packages: Packages, caplog: pytest.LogCaptureFixture
) -> None:
    """It had 25 lines of Trimtab's own frames and of importlib's before them."""
    packages.install("failing_plugin", FAILING)
    load_usable_plugins(["example.com/Plugin"])
    _, first, *lines = caplog.text.splitlines()
    assert first == "Traceback (most recent call last):"
    frames = [line for line in lines if line.startswith("  File ")]
    assert [line.rpartition("failing_plugin.py")[2] for line in frames] == [
        '", line 6, in <module>',
        '", line 4, in limit',
    ]
    assert lines[-1].startswith("json.decoder.JSONDecodeError: Expecting property name")


def test_a_module_that_is_missing_has_no_frames(packages: Packages, caplog: pytest.LogCaptureFixture) -> None:
    packages.install("missing_plugin")
    (packages.folder / "missing_plugin.py").unlink()
    load_usable_plugins(["example.com/Plugin"])
    assert caplog.text.splitlines()[1:] == ["ModuleNotFoundError: No module named 'missing_plugin'"]


def test_a_plugin_that_ends_the_program_when_it_is_looked_at_is_not_loaded(packages: Packages) -> None:
    packages.install(
        "ending_plugin",
        "import sys\nclass Plugin:\n    def __getattr__(self, name): sys.exit(0)\n"
        "    def __call__(self, seen): return {}\nplugin = Plugin()\n",
    )
    with pytest.raises(PluginImportError, match="cannot be imported: SystemExit: 0"):
        load_plugins(["example.com/Plugin"])
