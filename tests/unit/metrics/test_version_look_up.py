"""Which version of the custom metrics API is used while look-ups fail, in virtual time."""

import re

import pytest

from tests.unit.metrics.fake_metrics import LOOK_UP, Api, run
from trimtab.metrics.queries import MetricsError, ObjectMetric
from trimtab.metrics.versions import NOT_SERVED, choose

QUERY = ObjectMetric("shop", "pods", "web", "hits")
UNKNOWN = {"versions": [{"version": "v7"}], "preferredVersion": {"version": "v7"}}


def versions_used(api):
    return [path.split("/")[3] for path in api.asked if "namespaces" in path]


def test_a_failed_look_up_keeps_the_last_version():
    api = Api()
    api.versions = ["v1beta1"]

    async def act(reader, clock):
        await reader.custom(QUERY)
        api.look_up = 500
        await clock.sleep(15)
        await reader.custom(QUERY)

    run(api, act)
    assert versions_used(api) == ["v1beta1", "v1beta1"]


@pytest.mark.parametrize("answer", [404, UNKNOWN], ids=["not served", "no version that we know"])
def test_an_api_that_is_gone_has_no_version_any_more(answer):
    api = Api()

    async def act(reader, clock):
        await reader.custom(QUERY)
        api.look_up = answer
        await clock.sleep(15)
        with pytest.raises(MetricsError, match=re.escape(NOT_SERVED)):
            await reader.custom(QUERY)

    run(api, act)
    assert versions_used(api) == ["v1beta2"]


def test_the_reason_is_that_of_the_last_look_up():
    api = Api()
    api.look_up = 500
    heard = []

    async def act(reader, clock):
        for look_up in (500, 404, 500):
            api.look_up = look_up
            with pytest.raises(MetricsError) as caught:
                await reader.custom(QUERY)
            heard.append(str(caught.value))
            await clock.sleep(15)

    run(api, act)
    assert heard[1] == NOT_SERVED
    assert all("looking up the version of the custom metrics API" in text for text in (heard[0], heard[2]))


@pytest.mark.parametrize(("period", "want"), [(None, [1, 2]), (60.0, [1, 1, 1, 1, 2])])
def test_a_version_is_believed_for_one_period(period, want):
    api = Api()
    counts = []

    async def act(reader, clock):
        if period is not None:
            reader.believe_versions_for(period)
        for _ in want:
            await reader.custom(QUERY)
            counts.append(api.asked.count(LOOK_UP))
            await clock.sleep(15)

    run(api, act)
    assert counts == want


@pytest.mark.parametrize(
    ("preferred", "served", "want"),
    [
        ("v1beta2", ["v1beta1", "v1beta2"], "v1beta2"),
        ("v9", ["v1beta1", "v9", "v1beta2"], "v1beta2"),
        ("", ["v1beta1"], "v1beta1"),
        ("", [], None),
    ],
)
def test_the_newest_known_version_is_taken_if_the_preferred_one_is_unknown(preferred, served, want):
    assert choose(preferred, served) == want


def test_a_look_up_that_hangs_ends_with_the_deadline():
    api = Api()
    api.look_up = "hang"

    async def act(reader, clock):
        with pytest.raises(MetricsError, match=r"custom.metrics.k8s.io did not answer within 4 s"):
            await reader.custom(QUERY)
        return clock.monotonic()

    assert run(api, act, deadline=4.0) == 4.0
