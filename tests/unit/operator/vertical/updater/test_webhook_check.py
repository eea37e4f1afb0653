"""Whether the webhook works, by a probe or by upstream's Lease."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.model.vpa.webhooks import PROBE_LABEL
from trimtab.operator.settings.vertical import UpdaterLoopSettings
from trimtab.operator.vertical.updater.webhook_check import PROBE_ANSWER, AdmissionProbe, LeaseCheck

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ask(act, fault):
    clock, api = VirtualClock(NOON), FakeApi()
    api.fault = fault

    async def main():
        return await act(clock, Client(clock, AsgiTransport(api), seed=1))

    return clock.run(main()), api.requests


def answering(change=lambda challenge: challenge):
    """Answer as a webhook that writes the challenge of the probe, changed, into the annotation."""

    def fault(request):
        pod = json.loads(request.body)
        challenge = pod["metadata"]["labels"][PROBE_LABEL]
        pod["metadata"]["annotations"] = {PROBE_ANSWER: change(challenge)}
        return Answer(201, pod)

    return fault


async def probe_twice(clock, client):
    probe = AdmissionProbe(clock, client, "trimtab")
    return [await probe.problem(), await probe.problem()]


def test_a_webhook_that_answers_each_probe_works():
    problems, requests = ask(probe_twice, answering())
    assert problems == [None, None]
    challenges = [json.loads(request.body)["metadata"]["labels"][PROBE_LABEL] for request in requests]
    assert challenges == ["20260101120000-1", "20260101120000-2"]
    assert {request.query["dryRun"] for request in requests} == {"All"}


def test_the_answer_to_another_probe_does_not_count():
    first = []

    def stale(challenge):
        first.append(challenge)
        return first[0]

    problems, _ = ask(probe_twice, answering(stale))
    assert problems[0] is None
    assert "came back unchanged" in problems[1]


def test_a_probe_that_cannot_be_created_is_a_problem():
    problems, _ = ask(probe_twice, lambda request: Answer(403, status(403, message="no right")))
    assert all("the admission probe could not be created" in problem for problem in problems)
    assert all("no right" in problem for problem in problems)


def test_a_probe_without_the_lease_is_not_judged():
    async def act(clock, client):
        with pytest.raises(errors.Fenced):
            await AdmissionProbe(clock, client.fenced(ClosedFence()), "trimtab").problem()

    _, requests = ask(act, answering())
    assert requests == []


@pytest.mark.parametrize(
    ("age", "works"),
    [(timedelta(0), True), (timedelta(minutes=1), True), (timedelta(seconds=61), False), (None, False)],
)
def test_a_lease_is_fresh_for_a_minute(age, works):
    spec = {} if age is None else {"renewTime": (NOON - age).strftime("%Y-%m-%dT%H:%M:%S.000000Z")}

    async def act(clock, client):
        return await LeaseCheck(clock, client, UpdaterLoopSettings()).problem()

    problem, requests = ask(act, lambda request: Answer(200, {"metadata": {}, "spec": spec}))
    assert (problem is None) == works
    assert "/namespaces/kube-system/leases/" in requests[0].path


def test_a_lease_that_cannot_be_read_is_a_problem():
    settings = UpdaterLoopSettings(admission_lease_namespace="own", admission_lease_name="l")

    async def act(clock, client):
        return await LeaseCheck(clock, client, settings).problem()

    problem, requests = ask(act, lambda request: Answer(404, status(404, message="gone")))
    assert "the Lease of the admission controller could not be read" in problem
    assert requests[0].path.endswith("/namespaces/own/leases/l")
