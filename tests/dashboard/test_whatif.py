"""The what-if is the production decision on an edited observation, and changes nothing."""

import asyncio
import threading
from datetime import UTC, datetime

import msgspec
import pytest

from tests.dashboard import stage
from tests.dashboard.asking import app_of, entered
from tests.unit.decide.horizontal import builders as given
from trimtab.dashboard.pages import what_if as what_if_module
from trimtab.dashboard.pages.decision import decision_view
from trimtab.dashboard.pages.what_if import (
    Edits,
    MetricEdit,
    RefusedEditsError,
    edited,
    what_if,
)
from trimtab.dashboard.web import app as app_module
from trimtab.dashboard.web.workers import MAX_VIEWER_WAITING
from trimtab.decide.horizontal import Owner, Record, Sample, Series, decide, explain
from trimtab.decide.horizontal.observation.plugin_answers import PolicyAnswer
from trimtab.decide.horizontal.records.record import dumps
from trimtab.model.feature_gates import FeatureGates


def record_of(*readings, replicas=3, hpa=None, **fields):
    one = stage.autoscaler(hpa=hpa)
    stage.decided(one, replicas, *(readings or [given.usage_of(given.pods(replicas), 50)]), **fields)
    return one.records[-1]


def decision_of(record, edits):
    return decide(edited(record, edits), datetime.fromtimestamp(record.decision.now, UTC))


def test_without_edits_it_is_the_decision_that_was_made():
    record = record_of(given.usage_of(given.pods(3), 90))
    assert edited(record, Edits()) == record.observation
    assert what_if(record, Edits()).desired == record.decision.desired == 6


def test_a_plugin_that_is_not_called_again_is_named():
    """A replica policy looked as if it had seen the edited values."""
    answer = PolicyAnswer(plugin="example.com/Plan", replicas=5, reason="by the plan")
    view = what_if(record_of(policy_answers=(answer,)), Edits(metrics=(MetricEdit(0, 20),)))
    assert any("the edits for example.com/Plan, which is not called again" in text for text in view.ignored)
    assert what_if(record_of(), Edits()).ignored == ()


@pytest.mark.parametrize(
    "edits",
    [
        Edits(min_replicas=5),
        Edits(max_replicas=4, metrics=(MetricEdit(0, 150),)),
        Edits(metrics=(MetricEdit(0, 20),)),
        Edits(metrics=(MetricEdit(0, 20),), forgets=True),
        Edits(behavior={"scaleUp": {"tolerance": "0.5"}}, metrics=(MetricEdit(0, 70),)),
        Edits(
            behavior={"scaleDown": {"selectPolicy": "Disabled"}}, metrics=(MetricEdit(0, 1),), forgets=True
        ),
        Edits(selection_strategy="OwnerReference"),
        Edits(replicas=9),
    ],
    ids=str,
)
def test_it_equals_decide_on_the_edited_observation(edits):
    record = record_of()
    decision = decision_of(record, edits)
    view = what_if(record, edits)
    assert view == decision_view(Record(observation=edited(record, edits), decision=decision))
    told = explain(Record(observation=edited(record, edits), decision=decision))
    assert (view.reason, view.desired, view.asked) == (
        told.reason,
        decision.desired,
        decision.trace.recommended,
    )


def test_the_record_stays_as_it_is():
    record = record_of()
    before = dumps(record)
    what_if(record, Edits(min_replicas=4, metrics=(MetricEdit(0, 99),), replicas=2, forgets=True))
    assert dumps(record) == before


@pytest.mark.parametrize("percent", [0, 1, 33, 44, 50, 54, 56, 99, 100, 250])
def test_a_utilisation_comes_to_exactly_the_percent_that_was_set(percent):
    usage = given.samples({"web-1": 31, "web-2": 57, "web-3": 62})
    view = what_if(record_of(usage), Edits(metrics=(MetricEdit(0, percent),)))
    assert view.metrics[0].value == percent


@pytest.mark.parametrize("value", [0, 0.5, 3, 17.25, 4000])
@pytest.mark.parametrize(
    "metric",
    [
        given.external(given.average("5")),
        given.external(given.value("5")),
        given.object_metric(given.value("5")),
    ],
)
def test_a_series_comes_to_the_value_that_was_set(metric, value):
    record = record_of(given.series(2.5, 4) if metric.external else given.series(7), hpa=given.hpa(metric))
    view = what_if(record, Edits(metrics=(MetricEdit(0, value),)))
    assert view.metrics[0].value == pytest.approx(value, abs=0.002, rel=0.001)


def test_a_metric_that_is_zero_can_be_raised():
    record = record_of(given.usage_of(given.pods(3), 0))
    assert what_if(record, Edits(metrics=(MetricEdit(0, 80),))).metrics[0].value == 80
    queue = record_of(given.series(0), hpa=given.hpa(given.external(given.average("5"))))
    assert what_if(queue, Edits(metrics=(MetricEdit(0, 20),))).desired == 6, "4 of 3 to 12, at most doubled"


def test_a_wider_tolerance_keeps_the_replicas():
    record = record_of(given.usage_of(given.pods(3), 58))
    assert what_if(record, Edits()).desired == 4
    wide = Edits(behavior={"scaleUp": {"tolerance": "0.2"}})
    assert (what_if(record, wide).desired, what_if(record, wide).reason) == (3, "WithinTolerance")


def test_forgetting_lets_the_window_pass():
    record = record_of(given.usage_of(given.pods(4), 10), replicas=4, memory=given.settled(4))
    assert what_if(record, Edits()).reason == "HeldByScaleDownWindow"
    assert what_if(record, Edits(forgets=True)).desired == 1


@pytest.mark.parametrize(
    ("edits", "field"),
    [
        (Edits(min_replicas=20), "maxReplicas"),
        (Edits(max_replicas=0), "maxReplicas"),
        (Edits(behavior={"scaleUp": {"tolerance": "-1"}}), "tolerance"),
        (Edits(behavior={"scaleUp": {"tolerance": "much"}}), "tolerance"),
        (Edits(behavior={"scaleDown": {"stabilizationWindowSeconds": 9999}}), "stabilizationWindowSeconds"),
        (
            Edits(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 15}]}}),
            "value",
        ),
        (Edits(behavior={"scaleUp": 5}), "scaleUp"),
        (Edits(selection_strategy="Anything"), "selectionStrategy"),
        (Edits(metrics=(MetricEdit(7, 1),)), "metrics[7]"),
        (Edits(metrics=(MetricEdit(-1, 1),)), "metrics[-1]"),
        (Edits(metrics=(MetricEdit(0, -1),)), "metrics[0].value"),
        (Edits(metrics=(MetricEdit(0, float("nan")),)), "metrics[0].value"),
        (Edits(replicas=-1), "replicas"),
        (Edits(replicas=2_000_000_000), "replicas"),
    ],
)
def test_what_an_api_server_would_refuse_is_refused_with_the_field(edits, field):
    with pytest.raises(RefusedEditsError, match=field.replace("[", r"\[")):
        what_if(record_of(), edits)


def test_a_metric_that_could_not_be_read_cannot_be_set():
    with pytest.raises(RefusedEditsError, match="could not be read"):
        what_if(record_of(given.unreadable()), Edits(metrics=(MetricEdit(0, 1),)))


async def test_the_page_asks_over_http_and_gets_the_same():
    one = stage.steady()
    browser = await entered(app_of(one))
    edits = {"metrics": [{"index": 0, "value": 90}], "maxReplicas": 5}
    answer = await browser.post("/api/whatif", {"id": "hpa/shop/web", "edits": edits})
    want = what_if(one.records[-1], Edits(max_replicas=5, metrics=(MetricEdit(0, 90.0),)))
    decision = answer.json()["decision"]
    assert decision == msgspec.json.decode(msgspec.json.encode(want))
    assert (decision["desired"], decision["asked"]) == (5, 6)


async def test_a_refused_edit_is_told_over_http():
    browser = await entered(app_of(stage.steady()))
    answer = await browser.post("/api/whatif", {"id": "hpa/shop/web", "edits": {"minReplicas": 99}})
    assert answer.status == 422
    assert "maxReplicas" in answer.json()["message"]


@pytest.mark.parametrize("identity", ["hpa/shop/other", "hpa/shop", "", "vpa/shop/web", "native/shop/web"])
async def test_nothing_is_decided_about_an_unknown_autoscaler(identity):
    browser = await entered(app_of(stage.steady()))
    assert (await browser.post("/api/whatif", {"id": identity})).status == 404


class TestCountingByOwner:
    """W2: pods in a cluster have owners; a record that lacks them cannot be counted by owner."""

    OWN = given.pods(2, owners=(given.REPLICA_SET,))
    FOREIGN = given.pod("scrape-1", owners=(given.JOB,))
    OWNERS = {
        given.REPLICA_SET.uid: Owner(uid=given.REPLICA_SET.uid, owners=(given.DEPLOYMENT,)),
        given.JOB.uid: Owner(uid=given.JOB.uid),
    }
    READING = given.samples({"web-1": 50, "web-2": 50, "scrape-1": 900})

    def test_the_annotation_of_a_native_hpa_does_not_contradict_the_choice(self):
        note = {"annotations": {"autoscaling.trimtab.dev/selection-strategy": "LabelSelector"}}
        hpa = given.hpa(metadata=note, selection_strategy="LabelSelector")
        busy = given.usage_of(self.OWN, 90)
        record = record_of(busy, replicas=2, hpa=hpa, pods=self.OWN, owners=self.OWNERS)
        view = what_if(record, Edits(selection_strategy="OwnerReference"))
        assert (view.reason, view.next_step) == ("ScalesUp", "the new pods become ready and are measured")

    def test_with_owners_it_answers_what_the_switch_would_bring(self):
        record = record_of(self.READING, replicas=2, pods=(*self.OWN, self.FOREIGN), owners=self.OWNERS)
        view = what_if(record, Edits(selection_strategy="OwnerReference", forgets=True))
        assert (view.reason, view.asked, view.counted) == ("WithinTolerance", 2, 2)

    def test_without_them_it_says_why_it_cannot(self):
        record = record_of(given.usage_of(self.OWN, 50), replicas=2, pods=self.OWN)
        with pytest.raises(
            RefusedEditsError, match="selectionStrategy: the owners of these pods are not known"
        ):
            what_if(record, Edits(selection_strategy="OwnerReference"))

    def test_with_the_gate_off_it_names_the_gate(self):
        record = record_of(self.READING, replicas=2, pods=self.OWN, owners=self.OWNERS, gates=FeatureGates())
        with pytest.raises(RefusedEditsError, match="feature gate HPASelectionStrategy is off"):
            what_if(record, Edits(selection_strategy="OwnerReference"))


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        pytest.param([{"index": 0, "value": 1}] * 2, "metrics[0]: it is edited twice", id="one metric twice"),
        pytest.param(
            [{"index": 0, "value": index} for index in range(2000)],
            "metrics: 2000 edits for 2 metrics of the HPA",
            id="as many as fit into a body",
        ),
    ],
)
async def test_a_metric_is_edited_once(edits, message, monkeypatch):
    """2,700 edits of one metric, each with up to seven decisions, kept the whole process busy for 4 to 5 s."""
    monkeypatch.setattr(what_if_module, "decide", None)  # refused before anything is decided
    browser = await entered(app_of(stage.wave(steps=3)))
    answer = await browser.post("/api/whatif", {"id": "hpa/shop/web", "edits": {"metrics": edits}})
    assert (answer.status, answer.json()["message"]) == (422, message)


def test_the_number_of_decisions_does_not_depend_on_the_number_of_edits(monkeypatch):
    metrics = [given.external(given.average("12"), f"queue-{number}") for number in range(40)]
    series = [Series(samples=(Sample(5000, given.T, 0.0),)) for _ in metrics]
    record = record_of(*series, hpa=given.hpa(*metrics))
    calls = []

    def count(observation, now):
        calls.append(now)
        return decide(observation, now)

    monkeypatch.setattr(what_if_module, "decide", count)
    edits = Edits(metrics=tuple(MetricEdit(index, 7.0 + index) for index in range(len(metrics))))
    view = what_if(record, edits)
    assert [metric.value for metric in view.metrics] == [
        pytest.approx(7 + index, rel=0.001) for index in range(len(metrics))
    ]
    assert len(calls) <= 8


@pytest.fixture
def slow_what_if(monkeypatch):
    """Make every what-if wait until the test lets it go on."""
    began, gate = threading.Event(), threading.Event()

    def wait(record, edits):
        began.set()
        assert gate.wait(10), "the loop was held up, so that the test could not go on"
        return what_if(record, edits)

    monkeypatch.setattr(app_module, "what_if", wait)
    yield began, gate
    gate.set()


async def test_other_requests_are_answered_while_a_what_if_is_computed(slow_what_if):
    """It was computed on the event loop, which the operator in the same process shares."""
    browser = await entered(app_of(stage.steady()))
    began, gate = slow_what_if
    waiting = asyncio.ensure_future(browser.post("/api/whatif", {"id": "hpa/shop/web"}))
    while not began.is_set():  # noqa: ASYNC110 - a thread sets it
        await asyncio.sleep(0.01)
    assert (await browser.get("/api/overview")).status == 200
    assert not waiting.done()
    gate.set()
    assert (await waiting).status == 200


async def test_a_viewer_with_many_what_ifs_is_told_to_wait(slow_what_if):
    browser = await entered(app_of(stage.steady()))
    waiting = [
        asyncio.ensure_future(browser.post("/api/whatif", {"id": "hpa/shop/web"}))
        for _ in range(MAX_VIEWER_WAITING)
    ]
    async with asyncio.timeout(20):
        while browser.app._workers._waiting.total() < MAX_VIEWER_WAITING:  # noqa: ASYNC110 - requests have no event
            await asyncio.sleep(0)
    assert (await browser.post("/api/whatif", {"id": "hpa/shop/web"})).status == 429
    slow_what_if[1].set()
    assert [answer.status for answer in await asyncio.gather(*waiting)] == [200] * MAX_VIEWER_WAITING
    assert (await browser.post("/api/whatif", {"id": "hpa/shop/web"})).status == 200
