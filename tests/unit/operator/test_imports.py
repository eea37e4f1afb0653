"""What a program does not need it does not load: memory and start-up time are measured against the peers."""

import json
import subprocess
import sys

import pytest

from trimtab.operator.operator import VERTICAL
from trimtab.operator.vertical.wiring import LOOPS

HEAVY = frozenset(
    {
        "aiohttp",
        "celpy",
        "cryptography",
        "httptools",
        "jinja2",
        "matplotlib",
        "numpy",
        "pandas",
        "prometheus_client",
        "rich",
        "trimtab.adapter",
        "trimtab.dashboard",
        "trimtab.decide.vertical",
        "trimtab_lab",
        "trimtab.library",
        "trimtab.library.simulator",
        "uvicorn",
        "yaml",
    }
)


def loaded_by(*modules: str) -> frozenset[str]:
    """Return which of the heavy packages these modules bring along, in a process of their own."""
    code = f"import sys, json, {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return HEAVY.intersection(json.loads(done.stdout))


def test_help_loads_nothing_but_click():
    assert loaded_by("trimtab.cli") == frozenset()


def test_the_options_of_run_load_nothing_heavy():
    assert loaded_by("trimtab.cli.commands.run") == frozenset()


@pytest.mark.parametrize(
    "unneeded",
    ["numpy", "cryptography", "celpy", "rich", "trimtab.decide.vertical", "trimtab_lab", "trimtab.dashboard"],
)
def test_scaling_out_does_not_load(unneeded, horizontal_run):
    assert unneeded not in horizontal_run


@pytest.fixture(scope="module")
def horizontal_run() -> frozenset[str]:
    return loaded_by(
        "trimtab.cli.commands.run",
        "trimtab.cluster.config",
        "trimtab.cluster.http",
        "trimtab.operator.operator",
    )


def test_no_operator_loads_the_library_or_its_extras():
    loaded = loaded_by(
        "trimtab.operator.operator", "trimtab.operator.vertical.wiring", "trimtab.adapter.adapter"
    )
    assert loaded.isdisjoint({"matplotlib", "pandas", "trimtab.library"})


def test_recommending_needs_no_certificates():
    loaded = loaded_by("trimtab.cluster.http", "trimtab.operator.vertical.wiring")
    assert "cryptography" not in loaded
    assert "uvicorn" not in loaded


def test_every_vertical_component_can_be_made():
    assert tuple(LOOPS) == VERTICAL


def test_loading_the_program_hardly_looks_for_garbage():
    code = (
        "import gc; from trimtab.operator import gc_tuning; gc_tuning.collect_less_often(); "
        "before = gc.get_stats()[0]['collections']; import trimtab.cluster.http, trimtab.operator.operator; "
        "print(gc.get_stats()[0]['collections'] - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 5  # there were more than 60
