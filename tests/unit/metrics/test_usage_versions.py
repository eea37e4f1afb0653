"""Which version of metrics.k8s.io is read, in virtual time: v1 where it answers, else v1beta1."""

import asyncio

import pytest

from tests.unit.metrics.fake_metrics import USAGE_LOOK_UP, Api, run
from trimtab.metrics.queries import MetricsError, PodUsage
from trimtab.metrics.versions import USAGE_SECONDS

QUERY = PodUsage("shop")


class Server(Api):
    """Lists versions, and answers usage in some of them. `down` is the status of the others."""

    def __init__(self, *served, listed=None, down=404):
        super().__init__()
        self.served, self.down = served, down
        self.usage_versions = list(served if listed is None else listed)
        self.answer = lambda path: {"items": []} if path.split("/")[3] in self.served else self.down

    def serve(self, *versions):
        self.served, self.usage_versions = versions, list(versions)

    def used(self):
        """Return the versions of the queries since the last call."""
        versions = [path.split("/")[3] for path in self.asked if path.endswith("/pods")]
        self.asked.clear()
        return versions


def play(api, act):
    async def main(reader, clock):
        await act(reader, clock)

    run(api, main)


@pytest.mark.parametrize(
    ("served", "want"),
    [
        (["v1", "v1beta1"], ["v1"]),
        (["v1beta1", "v1"], ["v1"]),
        (["v1"], ["v1"]),
        (["v1beta1"], ["v1beta1"]),
        (["v2", "v1"], ["v1"]),
    ],
    ids=" ".join,
)
def test_v1_is_read_where_it_is_listed(served, want):
    api = Server(*served)

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        assert api.used() == want

    play(api, act)


@pytest.mark.parametrize("down", [404, 503])
@pytest.mark.parametrize("query", [QUERY, PodUsage()], ids=["one namespace", "all namespaces"])
def test_a_listed_version_that_does_not_answer_is_replaced_within_the_query(down, query):
    """An APIService of v1 whose metrics-server still serves v1beta1 only is listed, and unavailable."""
    api = Server("v1beta1", listed=["v1", "v1beta1"], down=down)

    async def act(reader, clock):
        await reader.pod_usage(query)
        assert api.used() == ["v1", "v1beta1"]
        await reader.pod_usage(query)
        assert api.used() == ["v1beta1"]

    play(api, act)


def test_a_version_that_failed_is_tried_again_after_a_period():
    api = Server("v1beta1", listed=["v1", "v1beta1"], down=503)

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        api.serve("v1", "v1beta1")
        await clock.sleep(15)
        api.used()
        await reader.pod_usage(QUERY)
        assert api.used() == ["v1"]

    play(api, act)


def test_a_version_that_disappears_costs_no_failed_query():
    api = Server("v1", "v1beta1")

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        for versions in (("v1beta1",), ("v1",), ("v1beta1",)):
            api.serve(*versions)  # the second time, none of the listed versions is left
            for _ in range(3):
                await reader.pod_usage(QUERY)  # raises nothing
                await clock.sleep(15)
            api.used()
            await reader.pod_usage(QUERY)
            assert api.used() == list(versions)

    play(api, act)


def test_a_version_that_appears_is_read_after_the_next_look_up():
    api = Server("v1beta1")

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        api.serve("v1", "v1beta1")
        api.used()
        for _ in range(round(USAGE_SECONDS / 15)):
            await clock.sleep(15)
            await reader.pod_usage(QUERY)
        assert api.used()[-2:] == ["v1beta1", "v1"]

    play(api, act)


def test_working_versions_are_looked_up_every_ten_minutes_only():
    api = Server("v1", "v1beta1")

    async def act(reader, clock):
        for _ in range(80):
            await reader.pod_usage(QUERY)
            await clock.sleep(15)

    play(api, act)
    assert api.asked.count(USAGE_LOOK_UP) == 2


def test_an_api_that_is_not_served_is_looked_up_once_per_period_and_noticed_when_it_appears():
    api = Server()
    api.usage_versions = 404

    async def act(reader, clock):
        for _ in range(3):
            with pytest.raises(MetricsError, match="it is down"):
                await reader.pod_usage(QUERY)
            with pytest.raises(MetricsError, match="it is down"):
                await reader.pod_usage(PodUsage("other"))
            assert api.asked.count(USAGE_LOOK_UP) == 1
            assert api.used() == ["v1beta1", "v1beta1"]
            await clock.sleep(15)
        api.serve("v1")
        await reader.pod_usage(QUERY)
        assert api.used() == ["v1"]

    play(api, act)


def test_two_versions_of_a_server_that_is_down_are_tried_once_per_period():
    api = Server(listed=["v1", "v1beta1"], down=503)

    async def act(reader, clock):
        for _ in range(2):
            for _ in range(3):
                with pytest.raises(MetricsError, match="it is down"):
                    await reader.pod_usage(QUERY)
            assert api.used() == ["v1", "v1beta1", "v1", "v1"]
            await clock.sleep(15)

    play(api, act)


@pytest.mark.parametrize(("served", "want"), [(["v1beta1"], ["v1beta1"]), (["v1"], ["v1beta1", "v1"])])
@pytest.mark.parametrize("look_up", [403, 500, {"versions": 7}], ids=["forbidden", "failing", "senseless"])
def test_usage_is_read_although_the_look_up_fails(look_up, served, want):
    api = Server(*served)
    api.usage_versions = look_up

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        assert api.used() == want

    play(api, act)


def test_a_failed_look_up_keeps_the_last_list():
    api = Server("v1")

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        api.usage_versions = 500
        await clock.sleep(USAGE_SECONDS)
        api.used()
        await reader.pod_usage(QUERY)
        assert api.used() == ["v1"]

    play(api, act)


def test_all_queries_of_a_sync_share_the_look_up():
    api = Server("v1", "v1beta1")

    async def act(reader, clock):
        await asyncio.gather(*(reader.pod_usage(PodUsage(name)) for name in ("a", "b", "c")))

    play(api, act)
    assert api.asked.count(USAGE_LOOK_UP) == 1


@pytest.mark.parametrize("status", [403, 429, 500])
def test_other_failures_are_of_the_server_and_not_of_a_version(status):
    api = Server("v1", "v1beta1")
    api.answer = lambda path: status

    async def act(reader, clock):
        with pytest.raises(MetricsError):
            await reader.pod_usage(QUERY)
        assert api.used() == ["v1"]

    play(api, act)
