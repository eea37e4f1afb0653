"""What the pages are told: rows, stories, pods, events and history, from a running operator's own objects."""

import asyncio
import json

import msgspec
import pytest

from tests.dashboard import stage
from tests.dashboard.asking import EVERYTHING, app_of, ask, entered
from tests.unit.decide.horizontal import builders as given
from trimtab.clock import SystemClock
from trimtab.dashboard import DashboardApp
from trimtab.dashboard.sources import Sources
from trimtab.dashboard.sources.history import PointHistory
from trimtab.dashboard.sources.horizontal import OperatorHorizontal
from trimtab.dashboard.web.http import encode_json
from trimtab.decide.horizontal import Code, FetchFailure, Owner
from trimtab.decide.horizontal.memory import extend
from trimtab.decide.horizontal.reasons import ROWS
from trimtab.decide.horizontal.standing import find_standing

UGLY = stage.UGLY


def page_of(one, identity="hpa/shop/web"):
    source = OperatorHorizontal([one])
    source.refresh()
    page = asyncio.run(source.page(identity, EVERYTHING))
    assert page is not None
    return page


def test_every_verdict_has_a_state():
    told = {reason: ROWS[reason].state for reason in Code}
    assert told[Code.SCALES_UP] == "scaling"
    assert told[Code.DOWN_WINDOW] == "held"
    assert told[Code.METRICS_FAILED] == "problem"
    assert set(told.values()) == {"scaling", "steady", "held", "paused", "problem", "waiting"}
    assert set(ROWS) == set(Code)


def test_an_own_and_a_native_hpa_of_one_name_have_their_own_pages():
    own, native = stage.steady(), stage.steady(native=True)
    source = OperatorHorizontal([own, native])
    assert [row.id for row in source.rows()] == ["hpa/shop/web", "native/shop/web"]
    assert asyncio.run(source.record("native/shop/web")) is native.records[-1]


def test_conditions_name_metrics_in_short():
    """The page showed `queue(&LabelSelector{MatchLabels:map[string]string{...` in its conditions."""
    metric = given.external(given.average(30), selector={"matchLabels": {"queue": "mail"}})
    one = stage.autoscaler(hpa=given.hpa(metric))
    stage.decided(one, 3, given.series(90))
    (active,) = (found for found in page_of(one).conditions if found.type == "ScalingActive")
    assert active.message.endswith('from external metric queue{queue="mail"}')


def test_an_autoscaler_without_a_decision_waits():
    page = page_of(stage.autoscaler())
    assert (page.row.state, page.decision, page.row.at) == ("waiting", None, 0.0)


def test_a_spec_that_cannot_be_decided_on_is_a_problem_with_its_text():
    one = stage.steady()
    one.problem = "spec.maxReplicas: Required value"
    page = page_of(one)
    assert (page.row.state, page.row.summary, page.problem) == ("problem", one.problem, one.problem)


def test_the_overview_tells_the_row_again_only_after_another_decision():
    one = stage.steady()
    source = OperatorHorizontal([one])
    first = source.rows()[0]
    assert source.rows()[0] is first
    stage.decided(one, 3, given.usage_of(given.pods(3), 90), at=given.T + 15)
    assert source.rows()[0].desired == 6


def test_a_round_about_thousands_is_told_in_several_looks(monkeypatch):
    monkeypatch.setattr("trimtab.dashboard.sources.horizontal.MAX_BUILT_ROWS", 2)
    ones = [stage.steady(f"web-{number}") for number in range(5)]
    source = OperatorHorizontal(ones)
    assert {row.desired for row in source.rows()} == {3}, "what is new is told at once"
    for one in ones:
        stage.decided(one, 3, given.usage_of(given.pods(3), 90), at=given.T + 15)
    assert [sum(row.desired == 6 for row in source.rows()) for _ in range(3)] == [2, 4, 5]


def test_a_foreign_pod_that_counts_comes_first_and_is_marked():
    """W5: it was a plain row among the others."""
    one = stage.autoscaler(hpa=given.hpa(given.cpu()))
    both = (given.pod("web-1", owners=(given.REPLICA_SET,)), given.pod("scrape-1", owners=(given.JOB,)))
    owners = {
        given.REPLICA_SET.uid: Owner(uid=given.REPLICA_SET.uid, owners=(given.DEPLOYMENT,)),
        given.JOB.uid: Owner(uid=given.JOB.uid),
    }
    stage.decided(one, 1, given.samples({"web-1": 50, "scrape-1": 900}), pods=both, owners=owners)
    first, second = page_of(one).pods
    assert (first.name, first.is_foreign, first.is_counted, first.reason) == (
        "scrape-1",
        True,
        True,
        "it belongs to Job/scrape",
    )
    assert not second.is_foreign


def test_pods_left_out_come_first_with_the_reason_and_their_samples():
    page = page_of(stage.wave(steps=3))
    first, second = page.pods[:2]
    assert (first.name, first.is_counted, first.reason) == ("scrape-x2k9p", False, "it belongs to Job/scrape")
    assert (first.samples, second.is_counted, second.reason) == (("990m", ""), True, "")
    assert page.pods_total == len(page.pods)


@pytest.mark.parametrize(
    ("pod", "samples", "why"),
    [
        (given.pod("a"), {}, "no sample yet"),
        (given.pod("a", phase="Pending", ready="False"), {"a": 10}, "not ready yet"),
        (given.pod("a", is_deleted=True), {"a": 10}, "going or failed: not part of the average"),
        (given.pod("a"), {"a": -5}, "its sample is refused: negative value -0.005"),
    ],
)
def test_a_pod_that_counts_but_is_not_measured_like_the_others_says_why(pod, samples, why):
    one = stage.autoscaler()
    stage.decided(one, 2, given.samples(samples | {"b": 50}), pods=(pod, given.pod("b")))
    found = {view.name: view.reason for view in page_of(one).pods}
    assert found["b"] == ""
    assert found["a"] == why


async def test_history_outlives_the_ring_of_records_and_keeps_events():
    one = stage.autoscaler(records=2)
    source = OperatorHorizontal([one])
    replicas = 3
    for step in range(10):
        pods = given.pods(replicas)
        usage = given.usage_of(pods, 50 if step % 4 else 95, age=-15.0 * step)
        replicas = stage.decided(one, replicas, usage, at=given.T + 15 * step, pods=pods)
        source.refresh()
    page = await source.page("hpa/shop/web", EVERYTHING)
    assert page is not None
    track = page.track
    assert len(track.at) == 10
    assert track.at == tuple(given.T + 15 * step for step in range(10))
    assert track.metrics[0].value[0] == 95.0
    assert track.metrics[0].up[0] == pytest.approx(55)
    assert track.metrics[0].down[0] == pytest.approx(33)
    assert "SuccessfulRescale" in {event.reason for event in page.events}


async def test_a_decision_that_was_left_out_draws_the_last_one_on():
    one = stage.steady()
    stage.decided(one, 3, given.usage_of(given.pods(3), 50), at=given.T + 15)
    last = one.records[-1]
    one.standing = find_standing(last.observation, last.decision)
    source = OperatorHorizontal([one])
    for step in (2, 3, 4):
        one.memory.own = extend(one.memory.own, given.T + 15 * step)
        source.refresh()
    page = await source.page("hpa/shop/web", EVERYTHING)
    assert page is not None
    assert page.track.at == (given.T, given.T + 60)
    assert page.track.desired == (3, 3)


async def test_taking_twice_adds_nothing():
    one = stage.steady()
    source = OperatorHorizontal([one])
    source.refresh()
    source.refresh()
    page = await source.page("hpa/shop/web", EVERYTHING)
    assert page is not None
    assert len(page.track.at) == 1


def test_all_histories_together_are_bounded_and_the_gone_are_forgotten():
    history = PointHistory(max_points=100)
    ones = {f"uid-{number}": stage.wave(steps=30).records for number in range(3)}
    for _ in range(3):
        history.refresh(ones)
    assert [len(history.get(uid).points) for uid in ones] == [20, 20, 20]
    history.refresh({})
    assert len(history.get("uid-0").points) == 0


def test_a_metric_that_failed_is_a_gap():
    one = stage.steady()
    stage.decided(one, 3, given.unreadable("no metrics today"), at=given.T + 15)
    page = page_of(one)
    assert page.track.metrics[0].value == (50.0, None)
    assert page.decision.metrics[0].problem.endswith("no metrics today")


def test_infinite_tolerance_is_written_as_nothing_and_not_as_bad_json():
    one = stage.autoscaler(hpa=given.hpa(behavior=given.tolerant(up="1e300", down="1")))
    stage.decided(one, 3, given.usage_of(given.pods(3), 50))
    assert json.loads(encode_json(page_of(one)))["decision"]["metrics"][0]["up"] is not None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain <b>", "plain <b>"),
        ("a\u202eb", r"a\u202eb"),
        ("\x1b[31mred", r"\u001b[31mred"),
        ("bell\x07", r"bell\u0007"),
        ("line\nend", "line\nend"),
        (r"already \u001b spelt", r"already \u001b spelt"),
        ("back\\slash", "back\\slash"),
        ("del\x7f", r"del\u007f"),
        ("isolate\u2066", r"isolate\u2066"),
    ],
)
def test_characters_that_hide_or_reorder_text_are_spelt_out(text, shown):
    assert json.loads(encode_json({"message": text})) == {"message": shown}


async def test_names_that_are_markup_travel_as_json_and_never_as_html():
    app = app_of(stage.steady(UGLY))
    browser = await entered(app)
    answer = await browser.get("/api/overview")
    assert answer.json()["horizontal"][0]["name"] == UGLY
    assert answer.headers["content-type"] == "application/json"
    missing = await ask(app, "GET", f"/{UGLY}", headers={"cookie": browser.cookie})
    assert (missing.status, missing.headers["content-type"]) == (404, "application/json")


async def test_a_page_is_found_by_its_id():
    browser = await entered(app_of(stage.wave(steps=5), stage.steady("other")))
    found = (await browser.get("/api/hpa", query="id=hpa%2Fshop%2Fweb")).json()
    assert found["decision"]["strategy"] == "OwnerReference"
    assert [metric["label"] for metric in found["decision"]["metrics"]] == ["cpu", "orders"]
    assert (await browser.get("/api/hpa", query="id=hpa%2Fshop%2Fnone")).status == 404
    assert (await browser.get("/api/vpa", query="id=vpa%2Fshop%2Fnone")).status == 404


async def test_a_failing_source_is_a_500_without_its_secrets(caplog):
    class Broken(OperatorHorizontal):
        def page(self, identity, rights):
            raise RuntimeError(f"secret of {identity}")

    browser = await entered(DashboardApp(SystemClock(), Sources(Broken([]))))
    answer = await browser.get("/api/hpa", query="id=hpa%2Fshop%2Fweb")
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert len(caplog.records) == 1


async def test_a_dashboard_that_may_not_read_a_metric_shows_the_operators_decision():
    """It called a healthy HPA a problem; an operator that may not read it has one."""
    one = stage.steady()
    refused = FetchFailure(message="pods.metrics.k8s.io is forbidden", is_forbidden=True)
    stage.decided(one, 3, refused)
    one.hpa = msgspec.structs.replace(one.hpa, status=one.records[0].decision.status)
    row = OperatorHorizontal([one], is_read_only=lambda: True).rows()[0]
    assert (row.state, row.reason, row.current, row.desired) == ("waiting", "NotAllowed", 3, 3)
    page = await OperatorHorizontal([one], is_read_only=lambda: True).page("hpa/shop/web", EVERYTHING)
    assert page is not None
    assert page.decision is None
    assert "you may not read a metric" in page.notice
    assert "3 replicas, 3 desired" in page.notice
    assert OperatorHorizontal([one]).rows()[0].reason == "MetricsFailed"


def test_a_row_is_built_again_for_each_decision_however_rarely_rows_are_read():
    """Rows were told apart by the addresses of objects, and a new decision often has that of one that is gone."""
    one = stage.autoscaler()
    source, hpa = OperatorHorizontal([one]), one.hpa
    for number in range(40):
        stage.decided(one, 3, given.usage_of(given.pods(3), 50 + number % 2 * 40), at=given.T + number)
        one.hpa = hpa  # a status in which only values moved is written later
        if number % 2:
            (row,) = source.rows()
            assert row.at == given.T + number
