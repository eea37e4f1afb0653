"""The public names and their parameters: what stands here is a promise."""

import inspect
import json
import subprocess
import sys

import pytest

import trimtab
from trimtab.decide.observed import decide_observation

NAMES = [
    "Autoscaler",
    "Explanation",
    "ManifestError",
    "ModelError",
    "Observation",
    "Record",
    "RecordError",
    "Replay",
    "Simulation",
    "Trace",
    "TraceError",
    "__version__",
    "decide",
    "explain",
    "read_autoscaler",
    "read_autoscalers",
    "replay",
    "simulate",
]

PARAMETERS = {
    "decide": ["observation", "now", "*plugins=()"],
    "explain": ["record"],
    "read_autoscaler": ["source", "*feature_gates=''"],
    "read_autoscalers": ["source", "*feature_gates=''"],
    "replay": ["record", "*plugins=()"],
    "simulate": [
        "autoscalers",
        "trace",
        "*requests=None",
        "*capacity=None",
        "*replicas=None",
        "*start_seconds=30.0",
        "*metrics_period=15.0",
        "*metrics_delay=15.0",
        "*sync_period=None",
        "*feature_gates=''",
        "*compat=''",
        "*plugins=()",
        "*limits=None",
        "*prices=None",
        "*compare=''",
    ],
    "Autoscaler.with_fields": ["fields"],
    "Autoscaler.patch_from": ["before"],
    "Trace.from_csv": ["path"],
    "Trace.from_dataframe": ["frame", "*time=''"],
    "Trace.from_prometheus": ["url", "queries", "*since='7d'", "*step='1m'", "*token_file=''"],
    "Trace.to_pandas": [],
    "Simulation.svg": [],
    "Simulation.to_pandas": [],
    "Simulation.replicas_to_pandas": [],
    "Simulation.size_svg": ["column"],
    "Simulation.sizes_to_pandas": [],
}

MEMBERS = {
    "Autoscaler": {
        "data",
        "feature_gates",
        "key",
        "kind",
        "patch_from",
        "scopes",
        "warnings",
        "with_fields",
    },
    "Replay": {"decided", "difference", "is_same", "notes", "recorded", "summary"},
    "Simulation": {
        "changes",
        "figures",
        "names",
        "outcomes",
        "replicas_to_pandas",
        "size_svg",
        "sizes",
        "sizes_to_pandas",
        "svg",
        "to_pandas",
        "trace",
    },
    "Trace": {
        "at",
        "columns",
        "end",
        "from_csv",
        "from_dataframe",
        "from_prometheus",
        "labels",
        "lines",
        "start",
        "times",
        "to_pandas",
    },
}

HEAVY = {"numpy", "pandas", "matplotlib", "msgspec", "yaml", "rich", "click", "asyncio", "typing"}


def find(path):
    found = trimtab
    for name in path.split("."):
        found = getattr(found, name)
    return found


def written(parameter):
    star = "*" if parameter.kind is parameter.KEYWORD_ONLY else ""
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return f"{star}{parameter.name}{default}"


def loaded_by(code):
    """Return the modules that code loads in a process of its own."""
    script = f"import json, sys; before = set(sys.modules); {code}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_the_public_names():
    assert sorted(trimtab.__all__) == sorted(NAMES)
    assert set(NAMES) <= set(dir(trimtab))


@pytest.mark.parametrize("path", PARAMETERS)
def test_the_parameters_of(path):
    given = inspect.signature(find(path)).parameters.values()
    assert [written(parameter) for parameter in given if parameter.name != "self"] == PARAMETERS[path]


@pytest.mark.parametrize("name", MEMBERS)
def test_the_members_of(name):
    assert {member for member in dir(find(name)) if member[0] != "_"} == MEMBERS[name]


def test_every_function_is_pinned():
    callables = {name for name in NAMES if callable(find(name)) and not inspect.isclass(find(name))}
    assert callables <= set(PARAMETERS)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "__version__"])
def test_a_name_is_described_and_errors_are_value_errors(name):
    assert find(name).__doc__
    if inspect.isclass(find(name)) and issubclass(find(name), Exception):
        assert issubclass(find(name), ValueError)


def test_another_name_is_an_error_as_in_any_module():
    with pytest.raises(AttributeError, match="module 'trimtab' has no attribute 'simulat'"):
        _ = trimtab.simulat  # type: ignore[attr-defined]  # which a type checker notices too


def test_importing_the_library_loads_nothing_else():
    loaded = loaded_by("import trimtab")
    assert HEAVY & loaded == set()
    assert {name for name in loaded if name.startswith("trimtab")} == {"trimtab"}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "__version__"])
def test_no_name_loads_numpy_pandas_or_matplotlib(name):
    assert {"numpy", "pandas", "matplotlib", "rich", "click"} & loaded_by(
        f"import trimtab; trimtab.{name}"
    ) == set()


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("import trimtab.decide.horizontal", id="the package is imported first"),
        pytest.param("from trimtab.decide.vertical import rules", id="a part of it"),
        pytest.param("import trimtab; trimtab.simulate", id="another public name"),
        pytest.param("import trimtab", id="nothing"),
    ],
)
def test_decide_can_be_called_whatever_was_imported_before(first):
    loaded_by(f"{first}; import trimtab; assert callable(trimtab.decide), trimtab.decide")


def test_decide_is_the_documented_function():
    assert list(inspect.signature(trimtab.decide).parameters) == list(
        inspect.signature(decide_observation).parameters
    )
