"""`trimtab simulate` as people type it, on the example of the documentation."""

import json
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from trimtab.cli import answer
from trimtab.cli.bundle import read_bundle
from trimtab.cli.commands.simulate import candidates_of
from trimtab.cli.errors import CommandError
from trimtab.library.simulator import Candidate
from trimtab.operator.settings.published import settings_annotation
from trimtab.operator.settings.settings import Settings

EXAMPLES = Path(__file__).parents[4] / "examples"
TODAY, EAGER = (str(EXAMPLES / name) for name in ("simulate-web.yaml", "simulate-web-eager.yaml"))
DAY = "a-day.csv"


@pytest.fixture(autouse=True)
def a_day_of_the_week(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = (EXAMPLES / "traffic-week.csv").read_text().splitlines()
    Path(DAY).write_text("\n".join([rows[0], *rows[55:100]]) + "\n")


def test_two_candidates_are_compared(capsys):
    assert answer(["simulate", TODAY, EAGER, "--trace", DAY, "--request", "cpu=500m"]) == 0
    out = capsys.readouterr().out
    assert "simulate-web.yaml" in out
    assert "simulate-web-eager.yaml" in out
    assert "cpu: time above target" in out


def test_as_data_with_every_change_and_its_reason(capsys):
    assert (
        answer(["simulate", TODAY, "--trace", DAY, "--request", "cpu=500m", "--changes", "-o", "json"]) == 0
    )
    (found,) = json.loads(capsys.readouterr().out)
    assert len(found["changes"]) == found["ups"] + found["downs"] > 0
    assert found["changes"][0]["reason"] == "cpu resource utilization (percentage of request) above target"


def test_the_records_of_the_changes_can_be_replayed(capsys):
    assert (
        answer(["simulate", TODAY, "--trace", DAY, "--request", "cpu=500m", "--records", "kept.jsonl"]) == 0
    )
    assert answer(["replay", "--quiet", "kept.jsonl"]) == 0
    assert "0 did not" in capsys.readouterr().err


def test_the_picture_stands_by_itself_and_names_the_candidates():
    assert (
        answer(["simulate", TODAY, EAGER, "--trace", DAY, "--request", "cpu=500m", "--svg", "picture.svg"])
        == 0
    )
    drawn = ET.parse("picture.svg").getroot()
    texts = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"needed at target", "simulate-web.yaml", "simulate-web-eager.yaml"} <= set(texts)
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param([TODAY, "--trace", "none.csv"], "'none.csv' does not exist", id="no such trace"),
        pytest.param([TODAY, "--trace", DAY], "add --request cpu=QUANTITY", id="no request"),
        pytest.param([TODAY, "--trace", DAY, "--request", "cpu"], "write NAME=QUANTITY", id="no amount"),
        pytest.param([TODAY, "--trace", DAY, "--request", "cpu=0"], "write NAME=QUANTITY", id="nothing"),
        pytest.param(
            [TODAY, "--trace", DAY, "--request", "cpu=500m", "--sync-period", "nan"],
            "sync_period: nan must be a number of at least 1",
            id="a period that is no number",
        ),
        pytest.param([TODAY, "--trace", TODAY], "the header must name", id="not a trace"),
        pytest.param([DAY, "--trace", DAY], "a manifest must be an object", id="not a manifest"),
        pytest.param(["none.yaml", "--trace", DAY], "not every input could be read", id="no such manifest"),
        pytest.param(
            [TODAY, "--trace", DAY, "--compat", "1.2"], "known are: kubernetes-1.36", id="unknown rules"
        ),
        pytest.param(
            [TODAY, "--trace", DAY, "--request", "cpu=500m", "--svg", "none/picture.svg"],
            "cannot write none/picture.svg: No such file or directory",
            id="a picture that cannot be written",
        ),
        pytest.param(
            [TODAY, "--trace", DAY, "--request", "cpu=500m", "--records", "none/kept.jsonl"],
            "cannot write none/kept.jsonl: No such file or directory",
            id="records that cannot be written",
        ),
    ],
)
def test_bad_input_is_one_clear_line(arguments, complaint, capsys):
    # Code 1 is for a manifest that was read and found wrong, as in `validate`.
    assert answer(["simulate", *arguments]) == (1 if "must be an object" in complaint else 2)
    err = capsys.readouterr().err
    assert complaint in err
    assert "Traceback" not in err


ASK = ["simulate", TODAY, "--trace", DAY, "--request", "cpu=500m", "-o", "json"]


def lease(path, **settings):
    note = settings_annotation(Settings.of(**settings))
    items = [
        {"kind": "Lease", "metadata": {"name": "other"}},
        {"kind": "Lease", "metadata": {"name": "trimtab-horizontal", "annotations": note}},
    ]
    Path(path).write_text(yaml.safe_dump({"kind": "List", "items": items}))
    return path


def figures(capsys, *more):
    assert answer([*ASK, *more]) == 0
    out, err = capsys.readouterr()
    return json.loads(out)[0], err


def test_it_decides_by_the_settings_of_the_operators_lease(capsys):
    """N19: "production decisions" were made with other numbers than production's."""
    plain, assumed = figures(capsys)
    assert "assumed settings (--settings takes the operator's): tolerance 0.1" in assumed
    file = lease(
        "lease.yaml", tolerance=5.0, sync_period=timedelta(seconds=30), feature_gates="HPAScaleToZero=true"
    )
    calm, told = figures(capsys, "--settings", file)
    assert (calm["ups"], calm["syncs"]) == (0, plain["syncs"] // 2 + 1)
    assert plain["ups"] > 0
    assert "decided every 30 s by the operator's settings: tolerance 5" in told
    assert "gates HPAScaleToZero=true" in told


def test_flags_of_the_operator_count_over_its_lease(capsys):
    file = lease("lease.yaml", tolerance=5.0)
    flag = "--horizontal-pod-autoscaler-tolerance=0.1"
    assert figures(capsys, "--settings", file, flag)[0] == figures(capsys)[0]
    calm, _ = figures(capsys, "--horizontal-pod-autoscaler-tolerance=5")
    assert calm["ups"] == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: Lease", "holds no Lease of an operator"),
        (": :", "lease.yaml: "),
        ("metadata: {annotations: {autoscaling.trimtab.dev/settings: nonsense}}", "cannot be read"),
    ],
)
def test_settings_that_are_none_are_refused_in_one_line(capsys, text, complaint):
    Path("lease.yaml").write_text(text)
    assert answer([*ASK, "--settings", "lease.yaml"]) == 2
    err = capsys.readouterr().err
    assert complaint in err


def test_annotations_of_native_hpas_count_as_in_the_operator():
    """N19: the strategy and the loss policy of a native HPA were left out."""
    annotations = {
        "autoscaling.trimtab.dev/selection-strategy": "OwnerReference",
        "autoscaling.trimtab.dev/on-loss": '{"cpu":{"policy":"Hold"}}',
    }
    text = Path(TODAY).read_text().replace("autoscaling.trimtab.dev/v2", "autoscaling/v2")
    (body,) = yaml.safe_load_all(text)
    body["metadata"]["annotations"] = annotations
    Path("native.yaml").write_text(yaml.safe_dump(body))
    (candidate,) = candidates_of(read_bundle(["native.yaml"]).documents, Settings())
    assert isinstance(candidate, Candidate)
    assert candidate.hpa.spec.selection_strategy == "OwnerReference"


def test_two_different_strategies_of_a_native_hpa_are_refused():
    text = Path(TODAY).read_text().replace("autoscaling.trimtab.dev/v2", "autoscaling/v2")
    (body,) = yaml.safe_load_all(text)
    body["metadata"]["annotations"] = {
        "autoscaling.trimtab.dev/selection-strategy": "OwnerReference",
        "autoscaling.alpha.kubernetes.io/pod-selection-strategy": "LabelSelector",
    }
    Path("native.yaml").write_text(yaml.safe_dump(body))
    with pytest.raises(CommandError, match="is 'OwnerReference' and annotation"):
        candidates_of(read_bundle(["native.yaml"]).documents, Settings())


def annotated(annotation, value, version="autoscaling.trimtab.dev/v2"):
    (body,) = yaml.safe_load_all(Path(TODAY).read_text())
    body["apiVersion"] = version
    body["metadata"]["annotations"] = {f"autoscaling.trimtab.dev/{annotation}": value}
    Path("annotated.yaml").write_text(yaml.safe_dump(body))
    return ["simulate", "annotated.yaml", "--trace", DAY, "--request", "cpu=500m"]


@pytest.mark.parametrize(
    ("annotation", "value"), [("mode", "dryrun"), ("selection-strategy", "ownerreference")]
)
def test_what_a_misspelt_annotation_would_hold_is_refused(annotation, value, capsys):
    assert answer(annotated(annotation, value)) == 1
    assert f"annotation autoscaling.trimtab.dev/{annotation} is '{value}', which is not known" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        ("replica-policies", "StepPlan", "cannot be read: it is no JSON"),
        ("replica-policies", '[{"nam": "example.com/StepPlan"}]', "cannot be read: "),
        ("on-loss", '{"cpu": {"policy": "Hope"}}', "cannot be read: "),
        ("max-age-seconds", '{"queue": 60}', "cannot be read: 'queue' is no metric of the spec"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_refused(annotation, value, words, capsys):
    """It was simulated as an HPA that is held, or without what the annotation should say."""
    assert answer(annotated(annotation, value, "autoscaling/v2")) == 1
    said = capsys.readouterr().err
    assert (
        f"HorizontalPodAutoscaler default/web: annotation autoscaling.trimtab.dev/{annotation} {words}"
        in said
    )
    assert "correct it; a backtest without it is of another HPA" in said


def test_an_annotation_without_effect_is_told(capsys):
    assert answer(annotated("replica-policies", "[]")) == 0
    said = "annotated.yaml: annotation autoscaling.trimtab.dev/replica-policies counts on native HPAs only and has no effect"
    assert said in capsys.readouterr().err


def test_a_dry_run_is_simulated_and_told(capsys):
    assert answer(annotated("mode", "DryRun")) == 0
    said = "annotated.yaml says autoscaling.trimtab.dev/mode: DryRun; it is simulated as if it scaled"
    assert said in capsys.readouterr().err.splitlines()
