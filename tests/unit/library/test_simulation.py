"""A simulation gives the figures, the picture and the records of `trimtab simulate`."""

import json
import re
import sys
from base64 import b64decode
from pathlib import Path

import pandas as pd
import pytest

import trimtab
from trimtab.cli import answer

EXAMPLES = Path(__file__).parents[3] / "examples"
WEB = EXAMPLES / "simulate-web.yaml"
TARGET = "spec.metrics[0].resource.target.averageUtilization"
HALF_CORE = {"cpu": "500m"}


@pytest.fixture(scope="module")
def web():
    return trimtab.read_autoscaler(WEB)


@pytest.fixture(scope="module")
def morning(tmp_path_factory):
    """Return the file of some hours of the week."""
    rows = (EXAMPLES / "traffic-week.csv").read_text().splitlines()
    path = tmp_path_factory.mktemp("load") / "morning.csv"
    path.write_text("\n".join([rows[0], *rows[55:80]]) + "\n")
    return path


@pytest.fixture(scope="module")
def load(morning):
    return trimtab.Trace.from_csv(morning)


@pytest.fixture(scope="module")
def both(web, load):
    return trimtab.simulate({"today": web, "lower": web.with_fields({TARGET: 50})}, load, requests=HALF_CORE)


def test_figures_picture_and_records_are_those_of_the_command_line(web, load, morning, tmp_path, capsys):
    picture, records = tmp_path / "picture.svg", tmp_path / "records.jsonl"
    options = [
        "--trace",
        str(morning),
        "--request",
        "cpu=500m",
        "--svg",
        str(picture),
        "--records",
        str(records),
    ]
    assert answer(["simulate", str(WEB), *options, "-o", "json"]) == 0
    (expected,) = json.loads(capsys.readouterr().out)
    ours = trimtab.simulate({WEB.name: web}, load, requests={"cpu": 0.5})
    (row,) = ours.to_pandas().reset_index().to_dict("records")
    carried = expected.pop("carried")["cpu"]
    expected.pop("syncs")
    assert (expected.pop("failed_syncs"), expected.pop("failure")) == (0, "")
    assert row == expected | {f"cpu_{name}": value for name, value in carried.items()}
    assert ours.svg() == picture.read_text()
    changes = ours.changes[WEB.name]
    assert len(changes) > 0
    assert [trimtab.replay(line).recorded for line in records.read_bytes().splitlines()] == changes


def test_the_text_is_the_table_of_the_command_line(web, load, morning, capsys):
    assert answer(["simulate", str(WEB), "--trace", str(morning), "--request", "cpu=500m"]) == 0
    _, *table = capsys.readouterr().out.splitlines()
    ours = str(trimtab.simulate({WEB.name: web}, load, requests=HALF_CORE))
    assert ours.splitlines() == table


def test_a_notebook_shows_the_picture_and_the_table(both):
    html = both._repr_html_()
    (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert b64decode(picture).decode() == both.svg()
    assert "<th>today</th><th>lower</th>" in html


def test_names_in_a_notebook_are_escaped(web, load):
    html = trimtab.simulate({"<b>": web}, load, requests=HALF_CORE)._repr_html_()
    assert "<b>" not in html
    assert "<th>&lt;b&gt;</th>" in html


def test_autoscalers_without_names_are_called_by_their_keys(web, load):
    assert trimtab.simulate(web, load, requests=HALF_CORE).names == ("default/web",)
    assert trimtab.simulate([web, web], load, requests=HALF_CORE).names == ("default/web", "default/web (2)")


def test_replicas_hold_from_one_change_to_the_next(both):
    frame = both.replicas_to_pandas()
    assert list(frame.columns) == ["today", "lower"]
    assert isinstance(frame.index, pd.DatetimeIndex)
    assert not frame.isna().any(axis=None)
    for name in both.names:
        changed = frame[name][frame[name].diff() != 0].tolist()
        first, *others = changed
        assert others == [record.decision.desired for record in both.changes[name]]
        assert first == both.changes[name][0].decision.current


def test_settings_change_the_decision(web, load):
    calm = trimtab.simulate(web, load, requests=HALF_CORE, sync_period=60, start_seconds=0)
    assert calm.figures["default/web"].syncs == int((load.end - load.start) // 60) + 1


def test_upstreams_rules_can_be_tried(web, load):
    (record, *_) = trimtab.simulate(web, load, requests=HALF_CORE, compat="kubernetes-1.37").changes[
        "default/web"
    ]
    assert not record.observation.rules.ours


VPA = {
    "apiVersion": "autoscaling.trimtab.dev/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param({}, r"in Python requests=\{'cpu': QUANTITY\}", id="no request"),
        pytest.param({"requests": {"cpu": "much"}}, "requests: quantities must match", id="no quantity"),
        pytest.param({"requests": {"cpu": None}}, "requests: ", id="no number"),
        pytest.param({"requests": {"cpu": 0}}, "requests: cpu: 0 must be more than nothing", id="nothing"),
        pytest.param({"sync_period": 0}, "sync_period: 0 must be a number of at least 1", id="no period"),
        pytest.param({"start_seconds": -1}, "start_seconds: -1 must be", id="a start in the past"),
        pytest.param({"metrics_period": float("nan")}, "metrics_period: nan must be", id="not a number"),
        pytest.param({"compat": "1.2"}, "known are: kubernetes-1.36", id="unknown rules"),
        pytest.param({"feature_gates": "Nonsense=true"}, "Nonsense", id="unknown gate"),
        pytest.param({"autoscalers": {}}, "autoscalers: name at least 1", id="no autoscaler"),
        pytest.param(
            {"autoscalers": trimtab.read_autoscaler(VPA), "replicas": 0}, "set replicas to 1", id="no pods"
        ),
    ],
)
def test_a_wrong_argument_is_named(web, load, options, complaint):
    arguments = {"autoscalers": web} | options
    with pytest.raises(trimtab.ModelError, match=complaint):
        trimtab.simulate(arguments.pop("autoscalers"), load, **arguments)


@pytest.mark.parametrize("autoscalers", ["web.yaml", ["web.yaml"], {"web": "web.yaml"}])
def test_a_path_in_the_place_of_an_autoscaler_or_a_trace_is_named(web, load, autoscalers):
    with pytest.raises(
        TypeError, match=r"autoscalers: 'web\.yaml' is no Autoscaler; read it with read_autoscaler"
    ):
        trimtab.simulate(autoscalers, load)
    with pytest.raises(TypeError, match=r"trace: 'week\.csv' is no Trace; load it with Trace\.from_csv"):
        trimtab.simulate(web, "week.csv")  # type: ignore[arg-type]  # which is what is tested


@pytest.fixture(scope="module")
def sized(load):
    """Return a simulation of two VPAs for 5 pods."""
    vpa = trimtab.read_autoscaler(VPA)
    policy = {"containerName": "*", "maxAllowed": {"cpu": "100m"}}
    small = vpa.with_fields({"spec.resourcePolicy.containerPolicies": [policy]})
    return trimtab.simulate({"free": vpa, "small": small}, load, replicas=5)


def test_vpas_are_simulated_too(sized, load):
    free, small = (sized.sizes[name]["cpu"] for name in ("free", "small"))
    assert sized.names == ("free", "small")
    assert small.target == 100 < free.target
    assert sized.outcomes["small"].starved["cpu"] > sized.outcomes["free"].starved["cpu"]
    assert (sized.figures, sized.changes) == ({}, {})
    assert sized._sizes[0].figures.syncs == int((load.end - load.start) // 60) + 1


def test_a_vpa_recommends_as_often_as_it_is_said(load):
    hourly = trimtab.simulate(trimtab.read_autoscaler(VPA), load, sync_period=3600)
    assert hourly._sizes[0].figures.syncs == int((load.end - load.start) // 3600) + 1


def test_the_targets_of_vpas_are_tables_and_their_requests_a_picture(sized):
    frame = sized.to_pandas()
    assert frame.loc["small", "cpu_target"] == 0.1
    assert frame.loc["free", "cpu_target"] == sized.sizes["free"]["cpu"].target / 1000
    assert frame.loc["free", "cpu_starved"] == sized.outcomes["free"].starved["cpu"]
    targets = sized.sizes_to_pandas()
    assert list(targets.columns) == ["free cpu", "small cpu"]
    assert set(targets["small cpu"]) == {0.1}
    assert targets["free cpu"].iloc[-1] == frame.loc["free", "cpu_target"]
    assert "Requested cpu in millicores of free, small" in sized.size_svg("cpu")
    html = sized._repr_html_()
    (picture,) = re.findall(r'base64,([^"]+)"', html)
    assert b64decode(picture).decode() == sized.size_svg("cpu")
    assert "<th>cpu: wasted</th>" in html


def test_a_picture_of_what_was_not_simulated_is_refused(sized, both):
    with pytest.raises(trimtab.ModelError, match="use size_svg"):
        sized.svg()
    for simulation, resource in ((sized, "memory"), (both, "cpu")):
        with pytest.raises(trimtab.ModelError, match=f"no VPA has usage of '{resource}'"):
            simulation.size_svg(resource)


def test_an_hpa_and_a_vpa_can_be_seen_together(web, load):
    mixed = trimtab.simulate({"size": trimtab.read_autoscaler(VPA), "count": web}, load, requests=HALF_CORE)
    assert mixed.names == ("count", "size")
    assert mixed._repr_html_().count("<img ") == 2
    assert str(mixed).splitlines()[0].split() == ["count", "size"]
    assert mixed.to_pandas().index.tolist() == ["count", "size"]


def test_an_hpa_and_a_vpa_share_a_workload(web, load):
    vpa = trimtab.read_autoscaler(VPA).with_fields({"spec.updatePolicy.updateMode": "Off"})
    alone = trimtab.simulate(web, load, requests=HALF_CORE)
    shared = trimtab.simulate({"both": [vpa, web]}, load, requests=HALF_CORE)
    assert shared.names == ("both",)
    assert shared.figures["both"].rows() == alone.figures["default/web"].rows()
    assert shared.outcomes["both"].replica_changes == len(shared.changes["both"]) > 0
    with pytest.raises(trimtab.ModelError, match="has 2 HorizontalPodAutoscalers for one workload"):
        trimtab.simulate({"both": [vpa, web, web]}, load, requests=HALF_CORE)


def test_upstreams_rules_play_the_same_load(web, load):
    vpa = trimtab.read_autoscaler(VPA)
    found = trimtab.simulate(
        {"count": web, "size": vpa}, load, requests=HALF_CORE, replicas=3, compare="upstream"
    )
    assert found.names == ("count", "count (upstream)", "size", "size (upstream)")
    assert not found.changes["count (upstream)"][0].observation.rules.ours
    writes = {name: outcomes.status_writes for name, outcomes in found.outcomes.items()}
    assert writes["size"] < writes["size (upstream)"], "upstream writes a status for every change of a bound"


def test_pandas_is_named_where_it_is_missing(both, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'trimtab\[notebook\]'"):
        both.to_pandas()
