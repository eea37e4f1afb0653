"""Which version of metrics.k8s.io is read, in virtual time: v1 where it answers, else v1beta1."""

import asyncio

import pytest

from tests.unit.metrics.fake_metrics import USAGE_LOOK_UP, Api, run
from trimtab.cluster.errors import Unreachable
from trimtab.metrics.queries import MetricsError, PodUsage
from trimtab.metrics.versions import USAGE_SECONDS

QUERY = PodUsage("shop")


class Server(Api):
    """Lists versions, and answers usage in some of them. `down` is the answer of the others."""

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


FAILURES = {
    "not found": 404,
    "not available": 503,
    "failing": 500,
    "a bad gateway": 502,
    "too slow for the aggregator": 504,
    "forbidden": 403,
    "unauthorized": 401,
    "overloaded": 429,
    "hanging": "hang",
    "no JSON object": [],
    "another object": {"kind": "APIVersions", "versions": ["v1"]},
    "items of another type": {"items": [{"containers": 7}]},
    "a failure with status 200": {
        "kind": "Status",
        "status": "Failure",
        "message": "it is down",
        "code": 500,
    },
}
"""The ways in which a version can fail."""

BOTH = ["v1", "v1beta1"]
QUERIES = pytest.mark.parametrize("query", [QUERY, PodUsage()], ids=["one namespace", "all namespaces"])


def each_failure(name):
    return pytest.mark.parametrize(name, FAILURES.values(), ids=FAILURES)


@each_failure("down")
@QUERIES
@pytest.mark.parametrize("working", BOTH)
def test_no_query_fails_while_a_listed_version_works(working, query, down):
    """Any failure but 404 and 503 stopped all scaling on CPU and memory, though v1beta1 answered."""
    api = Server(working, listed=BOTH, down=down)

    async def act(reader, clock):
        for _ in range(40):
            await reader.pod_usage(query)  # raises nothing
            await clock.sleep(15)
        used = api.used()
        assert used.count(working) == 40
        failing = len(used) - 40
        assert failing <= (0 if working == "v1" else 12), "15 s, 30 s, then once a minute"

    play(api, act)


@each_failure("down")
@QUERIES
def test_a_version_that_fails_is_replaced_within_the_query(query, down):
    """An APIService of v1 whose metrics-server still serves v1beta1 only is listed, and unavailable."""
    api = Server("v1beta1", listed=BOTH, down=down)

    async def act(reader, clock):
        await reader.pod_usage(query)
        assert api.used() == ["v1", "v1beta1"]
        await reader.pod_usage(query)
        assert api.used() == ["v1beta1"]

    play(api, act)


def test_a_hanging_version_delays_a_retry_by_a_fifth_of_the_deadline():
    api = Server("v1beta1", listed=BOTH, down="hang")
    delays = []

    async def act(reader, clock):
        for _ in range(4):
            began = clock.monotonic()
            await reader.pod_usage(QUERY)
            delays.append(round(clock.monotonic() - began, 3))
            await clock.sleep(15)

    play(api, act)
    assert delays == [6, 2, 0, 2]


def test_one_query_at_a_time_tries_a_failing_version_again():
    api = Server("v1beta1", listed=BOTH, down="hang")
    queries = [PodUsage(f"team-{number}") for number in range(30)]

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        await clock.sleep(15)
        api.used()
        await asyncio.gather(*map(reader.pod_usage, queries))
        used = api.used()
        assert (used.count("v1"), used.count("v1beta1")) == (1, 30)

    play(api, act)


def test_many_queries_of_a_hanging_version_succeed_from_the_next_sync_on():
    api = Server("v1beta1", listed=BOTH, down="hang")
    queries = [PodUsage(f"team-{number}") for number in range(100)]

    async def act(reader, clock):
        await asyncio.gather(*map(reader.pod_usage, queries), return_exceptions=True)
        for _ in range(5):
            await clock.sleep(15)
            await asyncio.gather(*map(reader.pod_usage, queries))  # raises nothing

    play(api, act)


def test_a_version_that_is_ended_by_the_deadline_is_replaced_in_the_next_query():
    """v1 failed, so that v1beta1 had the whole deadline and no part of it was kept for another version."""
    api = Server("v1beta1", listed=BOTH, down=500)

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        api.served, api.down = ("v1",), "hang"
        with pytest.raises(MetricsError, match="did not answer within 10 s"):
            await reader.pod_usage(QUERY)
        api.used()
        await reader.pod_usage(QUERY)
        assert api.used() == ["v1"]

    play(api, act)


@each_failure("first")
@each_failure("second")
def test_the_failure_of_the_preferred_version_is_reported_while_both_fail(first, second):
    def said_by(*versions):
        api = Server(listed=versions)
        api.answer = lambda path: first if path.split("/")[3] == "v1" else second
        said = []

        async def act(reader, clock):
            for _ in range(4):
                with pytest.raises(MetricsError) as failed:
                    await reader.pod_usage(QUERY)
                said.append((str(failed.value), failed.value.is_forbidden))
                await clock.sleep(15)

        play(api, act)
        return said

    assert said_by("v1", "v1beta1") == said_by("v1")


@each_failure("down")
def test_two_failing_versions_do_not_double_the_requests(down):
    api = Server(listed=BOTH, down=down)

    async def act(reader, clock):
        for _ in range(40):
            with pytest.raises(MetricsError):
                await reader.pod_usage(QUERY)
            await clock.sleep(15)
        used = api.used()
        assert used.count("v1") == 40
        assert used.count("v1beta1") <= 17, "once a minute, of a query each 15 s"

    play(api, act)


@each_failure("down")
@pytest.mark.parametrize("recovered", BOTH)
def test_a_version_that_recovers_is_read_within_a_minute(recovered, down):
    api = Server(listed=BOTH, down=down)

    async def act(reader, clock):
        for _ in range(40):
            with pytest.raises(MetricsError):
                await reader.pod_usage(QUERY)
            await clock.sleep(15)
        api.served = (recovered,)
        failed = 0
        for _ in range(20):
            try:
                await reader.pod_usage(QUERY)
            except MetricsError:
                failed += 1
            await clock.sleep(15)
        assert failed <= (0 if recovered == "v1" else 4)

    play(api, act)


def test_an_api_server_that_cannot_be_reached_says_nothing_about_a_version():
    api = Server("v1", "v1beta1")

    async def act(reader, clock):
        await reader.pod_usage(QUERY)
        api.answer = lambda path: (_ for _ in ()).throw(Unreachable("no connection"))
        with pytest.raises(MetricsError, match="no connection"):
            await reader.pod_usage(QUERY)
        api.answer = lambda path: {"items": []}
        api.used()
        await reader.pod_usage(QUERY)
        assert api.used() == ["v1"]

    play(api, act)


@QUERIES
@pytest.mark.parametrize("answer", [{"items": []}, {"items": None}, {"kind": "PodMetricsList", "items": []}])
def test_a_list_without_pods_is_an_answer(answer, query):
    api = Server("v1", "v1beta1")
    api.answer = lambda path: answer

    async def act(reader, clock):
        assert (await reader.pod_usage(query)).items == ()
        assert api.used() == ["v1"]

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
