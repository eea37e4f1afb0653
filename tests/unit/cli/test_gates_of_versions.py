"""A version that `--compat` names brings its own defaults of gates, in every command, unless the user names a gate."""

import json
from itertools import product
from pathlib import Path

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import T, cpu, hpa, observe, pod, samples
from trimtab.cli import answer
from trimtab.cli.explain import operator_decisions
from trimtab.cli.operator_settings import Choice, simulated_settings
from trimtab.decide.horizontal.records.record import WELL, decide_and_complete, dumps
from trimtab.decide.horizontal.rules import Rules
from trimtab.install import manifests, set_values
from trimtab.model.feature_gates import FeatureGates, GateError, gates_of_version
from trimtab.operator.settings.published import FoundSettings
from trimtab.operator.settings.settings import Settings

VERSIONS = ("", "kubernetes-1.36", "kubernetes-1.37")
OF_KUBERNETES = ("HPAConfigurableTolerance", "HPAScaleToZero", "PodLevelResources")
OPERATORS = (
    "",
    "HPAConfigurableTolerance=false",
    "HPAScaleToZero=false,HPASelectionStrategy=true",
    "HPAScaleToZero=true,PodLevelResources=false",
    "AllAlpha=true",
    "AllAlpha=true,AllBeta=false",
)
OWN = {"HPASelectionStrategy": True, "VPASelectorRefinement": True}
NAMED_GATES = ("", "HPAScaleToZero=true", "HPAScaleToZero=false,HPASelectionStrategy=false")


def possible(gates, version):
    try:
        FeatureGates.parse(gates, version)
    except GateError:
        return False
    return True


SITUATIONS = [
    pytest.param(gates, before, after, id=f"{gates or 'defaults'} {before or 'trimtab'} to {after}")
    for gates, before, after in product(OPERATORS, VERSIONS, VERSIONS[1:])
    if possible(gates, before)
]


def by_the_rule(gates, before, after):
    """Return what an operator's gates become under another version."""
    seen = FeatureGates.parse(gates, before)
    if before == after:
        return seen
    defaults = {name: gates_of_version(after)[name].default for name in OF_KUBERNETES}
    kept = {name: seen.enabled(name) for name in gates_of_version("") if name not in OF_KUBERNETES}
    return FeatureGates.of({**kept, **defaults}, after)


@pytest.mark.parametrize(("gates", "before", "after"), SITUATIONS)
def test_explain_decides_by_the_gates_of_the_version(gates, before, after):
    """A gate that the operator turned off, and that the version locks, was an error."""
    found = FoundSettings(Settings.of(feature_gates=gates, compat=before), "of a test")
    chosen = Choice("trimtab", "", after).over(found).settings
    assert chosen.gates == by_the_rule(gates, before, after)


@pytest.mark.parametrize(("gates", "before", "after"), SITUATIONS)
def test_a_decision_of_the_operator_is_repeated_by_the_same_gates(gates, before, after, monkeypatch):
    """With `--operator` the same command kept the operator's gates."""
    observation = msgspec.structs.replace(
        observe(hpa(cpu(50)), 1, samples({"web-1": 50}), pods=(pod("web-1"),)),
        gates=FeatureGates.parse(gates, before),
        rules=Rules(before or "trimtab"),
    )
    lines = dumps(decide_and_complete(observation, T, WELL)).decode()
    monkeypatch.setattr(operator_decisions, "ask_operator", lambda *_: lines)
    options = {"operator_namespace": "trimtab", "feature_gates": "", "compat": after, "plugins": ()}
    repeated = operator_decisions.repeat_decision("http://x", "shop", "web", options).observation
    assert (repeated.gates, repeated.rules) == (by_the_rule(gates, before, after), Rules(after))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("named", NAMED_GATES)
def test_simulate_has_the_gates_of_the_version(version, named):
    settings = simulated_settings(None, {"feature_gates": named, "compat": version})
    want = FeatureGates.parse(",".join(f"{name}=true" for name in OWN) + f",{named}", version)
    assert settings.gates == want


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("named", NAMED_GATES)
def test_programs_of_the_chart_have_the_gates_of_the_version(version, named):
    given = [f"settings.feature-gates={named}", f"settings.compat={version}"]
    objects = manifests(set_values([assignment for assignment in given if not assignment.endswith("=")]))
    programs = [item["spec"]["template"]["spec"] for item in objects if item["kind"] == "Deployment"]
    flags = {
        ",".join(
            argument.removeprefix("--feature-gates=")
            for argument in program["containers"][0]["args"]
            if argument.startswith("--feature-gates=")
        )
        for program in programs
    }
    want = FeatureGates.parse(",".join(f"{name}=true" for name in OWN) + f",{named}", version)
    assert [FeatureGates.parse(flag, version) for flag in flags] == [want]


QUEUE = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 0,
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "External",
                "external": {
                    "metric": {"name": "queue"},
                    "target": {"type": "AverageValue", "averageValue": "10"},
                },
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        pytest.param([], 0, id="on by default"),
        pytest.param(["--compat=kubernetes-1.37"], 0, id="on in 1.37"),
        pytest.param(["--compat=kubernetes-1.36"], 1, id="1.36 refuses such an HPA"),
        pytest.param(["--compat=kubernetes-1.36", "--feature-gates=HPAScaleToZero=true"], 0, id="named"),
    ],
)
def test_an_hpa_with_no_replicas_is_simulated_where_the_version_has_the_gate(
    options, exit_code, tmp_path, monkeypatch, capsys
):
    """With 1.36 it was scaled to zero, as in 1.37."""
    monkeypatch.chdir(tmp_path)
    Path("queue.json").write_text(json.dumps(QUEUE))
    Path("load.csv").write_text("time,queue\n" + "".join(f"{60 * minute},0\n" for minute in range(30)))
    assert answer(["simulate", "queue.json", "--trace", "load.csv", *options]) == exit_code
    if exit_code:
        said = capsys.readouterr().err
        assert "minReplicas" in said
        assert "`trimtab validate --feature-gates=HPAScaleToZero=false` shows everything" in said
        assert answer(["validate", "--feature-gates=HPAScaleToZero=false", "queue.json"]) == exit_code
