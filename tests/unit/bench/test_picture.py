"""The arithmetic of the benchmarks: what is kept, how ratios and exponents are made, what the page shows."""

import json
import os
import re
import time
from xml.etree import ElementTree as ET

import pytest

from bench.picture import command, goals, growth, machine, page, scenarios, tables
from bench.picture.api import requests_by_kind
from bench.picture.drawing import charts
from bench.picture.generator import Load, Seed, clones
from bench.picture.others import groups_of, inputs_of
from bench.picture.results import Record, Results
from bench.picture.watching import Delays
from tests.inputs.count import Outcome
from tests.scorecard import Scorecard


def turn(scenario, contender, number, run="2026-01-01 00:00", **figures):
    return Record(scenario, contender, number, run, "1,000 HPAs", figures)


def test_a_ratio_is_the_median_of_the_pairs_and_says_how_far_they_are_apart():
    pairs = [(10.0, 2.0), (20.0, 8.0), (10.0, 3.0)]
    results = Results([])
    for number, (theirs, ours) in enumerate(pairs):
        results.add(turn("main", "w5", number, controller_ms=theirs))
        results.add(turn("main", "ours", number, controller_ms=ours))
    found = results.ratio("main", "w5", "controller_ms")
    assert found is not None
    assert found.ratio == pytest.approx(0.3)
    assert found.spread == pytest.approx(1 / 3)
    assert found.pairs == 3


def test_a_round_that_only_one_of_them_finished_is_no_pair():
    results = Results([turn("main", "w5", 0, peak_mb=100.0), turn("main", "ours", 1, peak_mb=10.0)])
    assert results.ratio("main", "w5", "peak_mb") is None


def test_a_new_run_takes_the_place_of_the_old_one_of_its_scenario_only(tmp_path):
    file = tmp_path / "results.jsonl"
    results = Results([], file)
    results.add(turn("main", "ours", 0, peak_mb=1.0))
    results.add(turn("quiet", "ours", 0, peak_mb=2.0))
    results.add(turn("main", "ours", 0, run="2026-02-01 00:00", peak_mb=3.0))
    kept = Results.load(file)
    assert kept.values("main", "ours", "peak_mb") == {0: 3.0}
    assert kept.values("quiet", "ours", "peak_mb") == {0: 2.0}


def test_a_failed_turn_is_a_row_with_its_reason_and_no_figure():
    results = Results([turn("main", "ours", 0, peak_mb=1.0), Record("main", "w5", 0, "now", error="it died")])
    assert tables.error_table(results)[1] == ["main", "w5", "1", "it died"]
    assert results.ratio("main", "w5", "peak_mb") is None


@pytest.mark.parametrize(
    ("points", "want"),
    [
        pytest.param([(1, 5), (10, 50), (100, 500)], 1.0, id="ten times for ten times is linear"),
        pytest.param([(1, 5), (10, 500)], 2.0, id="a hundred times for ten times is quadratic"),
        pytest.param([(1, 5), (10, 5), (100, 5)], 0.0, id="the same for more is free"),
    ],
)
def test_the_exponent_of_growth(points, want):
    assert growth.exponent(points) == pytest.approx(want)


def test_one_point_has_no_exponent():
    assert growth.exponent([(1, 5)]) is None


def test_a_clone_is_as_long_as_its_seed_and_carries_its_own_names():
    uid = b"0b7c4f3e-1111-2222-3333-444444444444"
    owner = b"1b7c4f3e-1111-2222-3333-444444444444"
    value = b"\x0abench-seed/app-seedx-5eed5eed-podno 10.199.199.199 node-xyz " + uid + owner
    seeds = {
        "namespaces": Seed("/registry/namespaces/bench-seed", b"bench-seed", b"n" * 36),
        "deployments": Seed("/registry/deployments/bench-seed/app-seedx", b"app-seedx", b"d" * 36),
        "replicasets": Seed("/registry/replicasets/bench-seed/app-seedx-5eed5eed", b"app-seedx", owner),
        "pods": Seed("/registry/pods/bench-seed/app-seedx-5eed5eed-podno", value, uid),
        "autoscaler": Seed("/registry/horizontalpodautoscalers/bench-seed/app-seedx", b"", b"h" * 36),
    }
    load = Load(3, 2, 2)
    written = dict(clones(load, seeds))
    assert len(written) == 2 + 3 * (3 + 2)
    pods = {key: text for key, text in written.items() if key.startswith("/registry/pods/")}
    assert "/registry/pods/bench-0001/app-00001-9e3779b1-00001" in pods
    assert {len(text) for text in pods.values()} == {len(value)}
    assert not any(b"seed" in text or uid in text or owner in text for text in pods.values())
    assert len({text[-72:-36] for text in pods.values()}) == 6


def test_requests_are_counted_by_kind_without_watches_and_leases():
    scale = 'group="apps",resource="deployments",subresource="scale",verb="GET"'
    text = f"""\
apiserver_request_total{{code="200",{scale}}} 4
apiserver_request_total{{code="409",{scale}}} 1
apiserver_request_total{{group="",resource="pods",subresource="",verb="WATCH"}} 9
apiserver_request_total{{group="coordination.k8s.io",resource="leases",subresource="",verb="PUT"}} 9
apiserver_request_duration_seconds_sum 3
"""
    assert requests_by_kind(text) == {"GET apps/deployments/scale": 5}


def test_a_quantile_is_unknown_while_too_few_have_followed():
    delays = Delays(10, [1.0, 2.0, 3.0])
    assert delays.at(0.0) == 1.0
    assert delays.at(0.99) is None


def test_every_goal_has_a_row_measured_or_not():
    rows = tables.goal_table(Results([]))[1:]
    assert {row[0] for row in rows} - {""} == {str(goal) for goal in (*range(1, 9), 10, 11, 12, 13, 17)}
    assert {row[-1] for row in rows} == {"not measured"}


@pytest.mark.parametrize(
    ("value", "want"),
    [(0.23, "no"), (0.22, "yes"), (0.15, "moonshot")],
    ids=["above", "at the goal", "at the moonshot"],
)
def test_reached_or_not(value, want):
    assert goals.PARTS[0].reached(goals.Measured(value, "")) == want


def test_the_page_and_its_pictures_are_made_of_the_results():
    results = Results([])
    for who, cost in (("w5", 2.0), ("ours", 0.5)):
        figures = {
            "controller_ms": cost,
            "apiserver_ms": 1.0,
            "etcd_ms": 0.5,
            "react_p99": cost,
            "peak_mb": 100.0,
        }
        results.add(turn("main", who, 0, by_kind={"GET apps/deployments/scale": 1.0}, **figures))
    text = page.measured(results, ["performance-cpu.svg"], [{"version": "1", "date": "d", "ratios": {}}])
    assert (
        "| 1 | controller CPU per cycle with a write, vs w5 | ≤ 0.22 | ≤ 0.15 | 2 ms | 0.5 ms | **0.25** |"
        in text
    )
    assert "GET apps/deployments/scale 1" in text
    drawn = charts(results)
    assert set(drawn) == {"performance-cpu.svg", "performance-reaction.svg", "performance-memory.svg"}
    for chart in drawn.values():
        ET.fromstring(chart.svg())


def test_a_rendered_page_keeps_what_people_wrote(tmp_path, monkeypatch):
    written = tmp_path / "performance.md"
    written.write_text(f"# Before\n{page.BEGIN}\nold\n{page.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", written)
    monkeypatch.setattr(page, "HISTORY", tmp_path / "releases.jsonl")
    monkeypatch.setattr("bench.picture.drawing.IMAGES", tmp_path)
    page.write(Results([turn("main", "ours", 0, peak_mb=1.0)]))
    text = written.read_text(encoding="utf-8")
    assert text.startswith("# Before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert len((tmp_path / "releases.jsonl").read_text().splitlines()) == 1


def test_the_kept_results_can_be_read_and_shown():
    assert json.dumps(tables.ratios(Results.load()))


def test_scenarios_have_names_of_their_own_and_fit_into_an_hour_and_a_quarter():
    whole = scenarios.whole()
    assert len({one.name for one in whole}) == len(whole)
    assert sum(one.seconds for one in whole) < 4500
    assert sum(one.seconds for one in scenarios.quick()) < 180


def test_an_unknown_scenario_is_refused_with_the_known_ones():
    with pytest.raises(SystemExit, match="no scenario named nothing; there are: main"):
        command.main(["--only", "nothing", "--list"])


def test_the_page_names_tests_of_costs_that_are_there():
    named = re.findall(r"`(tests/[^`]+)`", page.PAGE.read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not (page.ROOT / name).is_file()] == []


def test_the_groups_of_a_scorecard_are_read_as_it_prints_them():
    scorecard = Scorecard()
    for fault in range(1, 21):
        scorecard.passed[fault] = 1
    scorecard.failed[20].append("tests/faults::test_f20")
    scorecard.inputs.add(
        "lab", [Outcome("a", True, 12.4), Outcome("b", True, 1.0, "taken"), Outcome("c", False, 2.0)]
    )
    printed = f"survived / tried\n{scorecard}\n"
    assert inputs_of(printed) == {"refused": 1, "sent": 2, "slowest_ms": 12}
    groups = groups_of(printed)
    assert groups["A transport and watch"] == [19, 20, 20]
    assert groups["E vertical"] == [0, 0, 6]
    assert len(groups) == 5


def test_goal_10_is_measured_by_a_scorecard():
    scorecard = Scorecard()
    for fault in range(1, 61):
        scorecard.passed[fault] = 1
    scorecard.failed[58].append("tests/scenarios::test_f58")
    scorecard.inputs.add("lab", [Outcome("a", True, 12.4), Outcome("b", True, 1.0)])
    results = Results([])
    results.add(turn("faults", "ours", 0, groups=groups_of(str(scorecard)), inputs=inputs_of(str(scorecard))))
    rows = {row[1]: row for row in tables.goal_table(results)[1:] if row[0] == "10"}
    assert (rows["HPA faults survived (share)"][5], rows["HPA faults survived (share)"][-1]) == (
        "54 / 54",
        "moonshot",
    )
    assert (rows["VPA faults survived (share)"][5], rows["VPA faults survived (share)"][-1]) == (
        "5 / 6",
        "no",
    )
    refused = rows["bad inputs refused clearly (share)"]
    assert (refused[5], refused[-1]) == ("2 / 2, slowest 12 ms", "moonshot")


def test_cpu_of_a_process_is_read_in_nanoseconds():
    before = time.process_time()
    read = machine.cpu_seconds(os.getpid())
    children = sum(os.times()[2:4])
    assert before <= read - children <= time.process_time()
