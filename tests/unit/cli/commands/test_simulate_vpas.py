"""`trimtab simulate` of VPAs, with Trimtab's own estimates and with those of a plug-in."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import trimtab
from tests.plugin_packages import install, install_example
from trimtab.cli import answer

WEEKDAY_PEAK = "example.com/weekday-peak"
DAY = 86400
MONDAY = 1_767_571_200  # 2026-01-05T00:00:00Z


@pytest.fixture(autouse=True)
def load(tmp_path, monkeypatch):
    """Three weeks of a load that is five times as high on Mondays, in cores, every ten minutes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = ["time,cpu"]
    for at in range(MONDAY, MONDAY + 22 * DAY, 600):
        wave = 1 + 0.2 * math.sin(at / DAY * 2 * math.pi)
        rows.append(f"{at},{wave * (5.0 if (at - MONDAY) // DAY % 7 == 0 else 1.0):.3f}")
    Path("weeks.csv").write_text("\n".join(rows) + "\n")


def vpa(name, recommender=None):
    spec: dict[str, Any] = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
    }
    if recommender:
        spec["recommenders"] = [{"name": recommender}]
    data = {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name},
    }
    Path(f"{name}.yaml").write_text(yaml.safe_dump(data | {"spec": spec}))
    return f"{name}.yaml"


def figures(capsys, *arguments):
    assert answer(["simulate", *arguments, "--trace", "weeks.csv", "--sync-period", "600", "-o", "json"]) == 0
    return {found["name"]: found for found in json.loads(capsys.readouterr().out)}


def test_weekday_peak_wastes_less_between_mondays_than_the_built_in_estimate(capsys, tmp_path):
    install_example(tmp_path, "weekday-peak")
    files = [vpa("built-in"), vpa("by-weekday", WEEKDAY_PEAK)]
    found = figures(capsys, *files, f"--plugins={WEEKDAY_PEAK}")
    own, peak = (found[file] for file in files)
    assert peak["failed_syncs"] == 0
    assert peak["sizes"]["cpu"]["target"] == pytest.approx(6000, rel=0.1), "it ends on a Monday"
    starved = [figures["outcomes"]["starved"]["cpu"] for figures in (own, peak)]
    assert starved[1] < starved[0], "the third Monday is known before it begins"


def test_a_table_compares_vpas_and_says_that_a_plugin_failed(capsys, tmp_path):
    code = "def plugin(seen):\n    raise KeyError('zone')\n"
    install(tmp_path, "failing_sizes", code, group="trimtab.estimators", name="example.com/failing")
    arguments = [
        "simulate",
        vpa("mine", "example.com/failing"),
        "--trace",
        "weeks.csv",
        "--sync-period",
        "86400",
    ]
    assert answer([*arguments, "--plugins=example.com/failing"]) == 0
    printed = capsys.readouterr()
    assert "mine.yaml: estimator example.com/failing 1.2.0 raised KeyError: 'zone'" in printed.err
    assert "22 of 22" in printed.out
    assert "syncs without an estimate" in printed.out


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ([], "estimator example.com/missing is not loaded"),
        (["--plugins=example.com/missing"], "plug-in example.com/missing is not installed"),
        (["--price=gold=1"], "write cpu=PRICE and memory=PRICE"),
    ],
)
def test_what_is_missing_is_named(capsys, flags, complaint):
    assert answer(["simulate", vpa("mine", "example.com/missing"), "--trace", "weeks.csv", *flags]) == 2
    assert complaint in capsys.readouterr().err


def test_the_library_backtests_an_estimator(tmp_path):
    install_example(tmp_path, "weekday-peak")
    mine = trimtab.read_autoscaler(vpa("mine", WEEKDAY_PEAK))
    load = trimtab.Trace.from_csv("weeks.csv")
    simulated = trimtab.simulate(mine, load, sync_period=3600, plugins=[WEEKDAY_PEAK])
    (sizes,) = simulated.sizes.values()
    assert sizes["cpu"].target == pytest.approx(6000, rel=0.1)
    with pytest.raises(trimtab.ModelError, match="not loaded: install its package and name it in plugins"):
        trimtab.simulate(mine, load)


HPA = {
    "apiVersion": "autoscaling.trimtab.dev/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 20,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
            }
        ],
    },
}


def hour(*titles):
    Path("weeks.csv").write_text("\n".join([",".join(["time", *titles]), *ROWS]) + "\n")


ROWS = [f"{60 * minute},{1 + minute % 7 / 10},{minute % 3 + 1}Gi" for minute in range(61)]


def columns(capsys, *arguments):
    assert answer(["simulate", *arguments, "--trace", "weeks.csv", "-o", "json"]) == 0
    return {found["name"]: found for found in json.loads(capsys.readouterr().out)}


def test_autoscalers_of_a_file_and_a_workload_are_one_candidate(capsys):
    hour("cpu", "memory")
    first, second = (yaml.safe_load(Path(vpa(name)).read_text()) for name in ("first", "second"))
    Path("both.yaml").write_text(yaml.safe_dump_all([HPA, first]))
    Path("three.yaml").write_text(yaml.safe_dump_all([HPA, first, second]))
    both = columns(capsys, "both.yaml", "--request=cpu=500m")
    assert list(both) == ["both.yaml"]
    assert both["both.yaml"]["peak"] > 1
    assert both["both.yaml"]["outcomes"]["resizes"] > 0
    found = columns(capsys, "three.yaml", "--request=cpu=500m", "--compare=upstream")
    names = [f"default/{name} + default/web" for name in ("first", "second")]
    assert list(found) == [*names, *(f"{name} (upstream)" for name in names)]


def test_upstream_knows_no_scope(capsys):
    arguments = ["leader-follower.yaml", "--request=cpu=1", "--request=memory=4Gi", "--compare=upstream"]
    examples = Path(__file__).parents[4] / "examples"
    arguments[0] = str(examples / arguments[0])
    trace = ["--trace", str(examples / "leadership-day.csv"), "--sync-period=600", "-o", "json"]
    assert answer(["simulate", *arguments, *trace]) == 0
    ours, upstream = (found["sizes"] for found in json.loads(capsys.readouterr().out))
    assert ours["postgres cpu"]["target"] < 500 < 2000 < ours["postgres-leader cpu"]["target"]
    assert upstream["postgres cpu"]["target"] > 2000, "it learns from the leader, too"
    assert upstream["postgres-leader cpu"]["target"] is None, "the other VPA has all pods"


def test_requests_limits_and_prices_are_those_of_the_command_line(capsys, tmp_path):
    hour("cpu", "memory")
    picture = tmp_path / "picture.svg"
    options = ["--request=cpu=2", "--request=main/memory=1Gi", "--limit=memory=2Gi", "--price=cpu=1,memory=2"]
    found = columns(capsys, vpa("mine"), *options, f"--svg={picture}")["mine.yaml"]
    assert found["outcomes"]["oom_kills"] > 0, "3 GiB are more than the limit"
    assert found["cost"] > 0
    assert picture.read_text().count("<path") == 4, "an area and a line for CPU and for memory"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--limit=nope/cpu=1"], "limit of nope/cpu: the trace has no container nope, but main"),
        (["--request=memory=2Gi", "--limit=main/memory=1Gi"], "main requests 2147483648 of memory"),
    ],
)
def test_limits_that_no_pod_can_have_are_refused(capsys, options, complaint):
    hour("main/cpu", "main/memory")
    assert answer(["simulate", vpa("mine"), "--trace=weeks.csv", *options]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--limit=cpu=1", "--price=cpu=1"])
def test_what_only_vpas_have_is_refused_for_hpas(capsys, option):
    hour("cpu", "memory")
    Path("web.yaml").write_text(yaml.safe_dump(HPA))
    assert answer(["simulate", "web.yaml", "--trace=weeks.csv", "--request=cpu=1", option]) == 2
    assert "--limit and --price are for VPAs" in capsys.readouterr().err


def test_the_names_of_many_candidates_stay_in_the_picture(capsys, tmp_path):
    hour("cpu", "memory")
    picture = tmp_path / "picture.svg"
    names = [f"{name}-of-the-web-shop" for name in ("first", "second", "third", "fourth", "fifth")]
    assert answer(["simulate", *map(vpa, names), "--trace=weeks.csv", f"--svg={picture}"]) == 0
    ends = [
        (int(x) + 7 * len(text), int(y))
        for x, y, text in re.findall(r'<text x="(\d+)" y="(\d+)">(.+)</text>', picture.read_text())
    ]
    assert max(x for x, _ in ends) <= 960
    assert {y for _, y in ends} == {23, 39}


def test_changes_say_what_was_done_to_pods(capsys):
    hour("cpu", "memory")
    assert answer(["simulate", vpa("mine"), "--trace=weeks.csv", "--request=cpu=100m", "--changes"]) == 0
    out = capsys.readouterr().out
    assert "InPlaceResizeRequested: Pod web-1: Resize of the pod was requested by VPA Updater" in out
