"""The lab's own loads, turned up and down through the page's controls."""

import pytest

from tests.dashboard.asking import app_of, entered
from tests.unit.decide.horizontal import builders as given
from trimtab.clock import FastClock, SystemClock
from trimtab.dashboard.sources.lab_load import LabLoads
from trimtab.dashboard.web.app import clock_speed
from trimtab_lab.load.load import Load
from trimtab_lab.load.plan import parse_plan
from trimtab_lab.metrics.values import MetricValues

PLAN = """
apiVersion: lab.trimtab.dev/v1
kind: LoadPlan
workloads:
- {name: web, namespace: shop, cpu: {type: constant, value: "2"}}
- {name: mailer, queue: {metric: queue_length, arrivals: {type: constant, value: "20"}, rate: "5"}}
series:
- {name: backlog, labels: {queue: images}, value: {type: constant, value: "7"}}
"""


@pytest.fixture
def lab():
    return Load(given.NOW, MetricValues(), parse_plan(PLAN))


def test_every_load_is_listed_in_words(lab):
    told = {one.name: (one.title, one.detail, one.factor) for one in LabLoads(lab).loads()}
    assert told == {
        "web": ("shop/web", "the CPU that its work takes", 1.0),
        "mailer": ("default/mailer", "what arrives at its queue queue_length", 1.0),
        "backlog{queue=images}": ("backlog{queue=images}", "the value of this metric", 1.0),
    }


async def test_turning_one_up_leaves_the_others(lab):
    browser = await entered(app_of(controls=LabLoads(lab)))
    answer = await browser.post("/api/loads", {"name": "web", "factor": 2.5})
    assert answer.status == 200
    assert (lab.factor("web"), lab.factor("mailer")) == (2.5, 1.0)
    assert (await browser.post("/api/loads", {"name": "other", "factor": 2})).status == 404


def test_a_fast_clock_does_not_hurry_the_viewer():
    assert (clock_speed(FastClock(60)), clock_speed(SystemClock())) == (60, 1.0)
