"""A plug-in is backtested with the code that decides in production."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import trimtab
from tests.plugin_packages import install, install_example
from trimtab.cli import cli

HPA = """
apiVersion: autoscaling.trimtab.dev/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 30
  metrics:
  - type: External
    external: {metric: {name: requests}, target: {type: AverageValue, averageValue: "1000"}}
"""
PLAN = """
  replicaPolicies:
  - name: example.com/StepPlan
    parameters: {metric: requests, steps: [{above: 0, pods: 1, per: 100}, {above: 200, pods: 3, per: 100}]}
"""
FILTER = "  selectionStrategy: example.com/NotDraining\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the example step-plan, an HPA that uses it, and 1 hour of load."""
    monkeypatch.syspath_prepend(str(tmp_path))
    install_example(tmp_path, "step-plan")
    install_example(tmp_path, "not-draining")
    (tmp_path / "plan.yaml").write_text(HPA + PLAN + FILTER)
    (tmp_path / "plain.yaml").write_text(HPA)
    rows = [f"2026-01-01T00:{minute:02d}:00Z,{350 if minute < 30 else 50}" for minute in range(60)]
    (tmp_path / "load.csv").write_text("\n".join(["time,requests", *rows]))
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, [*arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_simulate_compares_a_policy_with_none(folder: Path):
    plugins = "--plugins=example.com/StepPlan,example.com/NotDraining"
    files = [str(folder / name) for name in ("plan.yaml", "plain.yaml")]
    records = str(folder / "records.jsonl")
    text = run(
        "simulate", *files, f"--trace={folder / 'load.csv'}", plugins, "-o", "json", f"--records={records}"
    )
    plan, plain = json.loads(text[text.index("[") : text.rindex("]") + 1])
    assert (plan["peak"], plain["peak"]) == (8, 1)
    assert "came out the same" in run("replay", records, plugins)
    without = run("replay", records, "--quiet")
    assert "replica policy example.com/StepPlan: the recorded answer counts" in without
    assert " 0 did not" in without


def test_a_notebook_does_the_same(folder: Path):
    hpa = trimtab.read_autoscaler(folder / "plan.yaml")
    trace = trimtab.Trace.from_csv(folder / "load.csv")
    result = trimtab.simulate(hpa, trace, plugins=["example.com/StepPlan", "example.com/NotDraining"])
    (changes,) = result.changes.values()
    assert max(record.decision.desired for record in changes) == 8
    with pytest.raises(ValueError, match=r"plug-in example\.com/Other is not installed"):
        trimtab.simulate(hpa, trace, plugins=["example.com/Other"])


def test_an_unknown_plugin_is_an_error_of_the_command(folder: Path):
    arguments = ["simulate", str(folder / "plan.yaml"), f"--trace={folder / 'load.csv'}"]
    result = CliRunner().invoke(cli, [*arguments, "--plugins=example.com/Other"])
    assert result.exit_code != 0
    assert "plug-in example.com/Other is not installed" in result.output


RAISES = "def plugin(seen):\n    raise KeyError('zone')\n"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param((), "pod filter example.com/NotDraining is not loaded: install its package", id="none"),
        pytest.param(
            ("--plugins=example.com/NotDraining",),
            "replica policy example.com/StepPlan is not loaded",
            id="one",
        ),
    ],
)
def test_an_hpa_is_not_simulated_without_the_plugins_that_it_names(folder: Path, flags, words):
    """The backtest compared an HPA whose plug-ins were left out, and said nothing."""
    line = ["simulate", str(folder / "plan.yaml"), f"--trace={folder / 'load.csv'}", *flags]
    result = CliRunner().invoke(cli, line)
    assert result.exit_code != 0
    assert "plan.yaml" in result.output
    assert words in result.output
    hpa = trimtab.read_autoscaler(folder / "plan.yaml")
    with pytest.raises(trimtab.ModelError, match="is not loaded: install its package and name it in plugins"):
        trimtab.simulate(hpa, trimtab.Trace.from_csv(folder / "load.csv"))


def test_a_plugin_of_another_kind_is_not_simulated(folder: Path):
    (folder / "plan.yaml").write_text(HPA + PLAN.replace("StepPlan", "NotDraining"))
    hpa = trimtab.read_autoscaler(folder / "plan.yaml")
    with pytest.raises(trimtab.ModelError, match="NotDraining is a pod filter and no replica policy"):
        trimtab.simulate(
            hpa, trimtab.Trace.from_csv(folder / "load.csv"), plugins=["example.com/NotDraining"]
        )


def test_a_plugin_that_fails_is_part_of_the_figures(folder: Path):
    """The plug-in failed in every sync, and the figures looked as if it had worked."""
    install(folder, "raising_plan", RAISES, group="trimtab.replica_policies", name="example.com/Raises")
    (folder / "plan.yaml").write_text(HPA + PLAN.replace("StepPlan", "Raises"))
    text = run(
        "simulate",
        str(folder / "plan.yaml"),
        f"--trace={folder / 'load.csv'}",
        "--plugins=example.com/Raises",
    )
    assert "plan.yaml: replica policy example.com/Raises 1.2.0 raised KeyError: 'zone'" in text
    assert "syncs without a plug-in's answer" in text
