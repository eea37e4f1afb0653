"""Faults while replicas hold shares: what a copy misses of its namespaces, no other copy sees for it.

Each copy watches only the namespaces of its shards. So each fault of transport, watch and leadership is tried again on
one copy of two, while pods come and go, an HPA is edited and a namespace is created. In the end each copy caches what
the server holds of its own namespaces, each HPA is decided by one copy, and the copy without a fault noticed nothing.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from tests.faults.horizontal.scene import first, is_watch, lists
from tests.scenarios.copies import cached
from tests.scenarios.horizontal.sharing import LEASE, LOOK, PERIOD, Copy
from tests.scenarios.horizontal.teams import PLACES, Teams, selectors, team, with_teams
from tests.support.transport import Answer, Line, failure, status
from trimtab.cluster.errors import TransportError
from trimtab.cluster.resource import DEPLOYMENTS, PODS
from trimtab.cluster.transport import Request, Response
from trimtab.operator.share_keeper import KEEP_SECONDS

JSON = {"content-type": "application/json"}
SHARDS_EACH = 2
RECOVERS_WITHIN = 90.0


@dataclass(frozen=True)
class Fault:
    """What happens to a copy, for how long, and how many lists of pods it may cost for each shard."""

    begin: Callable[[Copy], None]
    seconds: float = 60.0
    lists: int = 0
    keeps_shards: bool = True


def is_list(request: Request) -> bool:
    return request.method == "GET" and "limit" in dict(request.query)


def cut(copy: Copy) -> None:
    left = [5]

    def alter(line: bytes) -> list[bytes]:
        left[0] -= 1
        if left[0] >= 0:
            raise TransportError("cut in the middle of an event")
        return [line]

    copy.actor.line.alter = lambda _: alter
    copy.actor.line.drop_all()


def end_at_once(copy: Copy) -> None:
    copy.actor.line.answer = lambda request: Response(200, JSON, b"") if is_watch(request) else None
    copy.actor.line.drop_all()


def gone(answer: Response) -> Callable[[Copy], None]:
    def begin(copy: Copy) -> None:
        seen: Counter[str] = Counter()

        def once_each(request: Request) -> Response | None:
            """Answer the next watch of each kind and shard."""
            if not is_watch(request) or seen[request.path] >= SHARDS_EACH:
                return None
            seen[request.path] += 1
            return answer

        copy.actor.line.answer = once_each
        copy.actor.line.drop_all()

    return begin


EXPIRED = failure(410, "Expired")
EXPIRED_EVENT = json.dumps({"type": "ERROR", "object": json.loads(EXPIRED)}).encode() + b"\n"


def stall(copy: Copy) -> None:
    copy.actor.line.is_silent = is_watch


def twice(copy: Copy) -> None:
    copy.actor.line.alter = lambda _: lambda line: [line, line]
    copy.actor.line.drop_all()


def replay_old(copy: Copy) -> None:
    def of_watch(_: Request) -> Callable[[bytes], list[bytes]]:
        oldest: dict[str, bytes] = {}

        def alter(line: bytes) -> list[bytes]:
            event = json.loads(line)
            if event["type"] not in {"ADDED", "MODIFIED"}:
                return [line]
            old = oldest.setdefault(event["object"]["metadata"]["uid"], line)
            return [line] if old is line else [line, old]

        return alter

    copy.actor.line.alter = of_watch
    copy.actor.line.drop_all()


def lag(copy: Copy) -> None:
    """All watches expire, and the server that answers then has seen nothing yet and serves no watch."""
    old = json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode()
    gone(status(410, "Expired"))(copy)
    expired = copy.actor.line.answer

    def answer(request: Request) -> Answer:
        if is_list(request):
            return Response(200, JSON, old)
        return expired(request) or (TransportError("no route to host") if is_watch(request) else None)

    copy.actor.line.answer = answer


def garbage(copy: Copy) -> None:
    copy.actor.line.alter = lambda _: lambda line: [line[: len(line) // 2]]


def expire_lists(copy: Copy) -> None:
    """The watches expire, and so does the continue token of the first list after that."""
    gone(status(410, "Expired"))(copy)
    expired, paged = (
        copy.actor.line.answer,
        first(SHARDS_EACH, lambda one: status(410, "Expired") if is_list(one) else None),
    )
    copy.actor.line.answer = lambda request: paged(request) or expired(request)


def refuse(answer: Response) -> Callable[[Copy], None]:
    """Every request about objects is answered so."""

    def begin(copy: Copy) -> None:
        copy.actor.line.answer = lambda _: answer
        copy.actor.line.drop_all()

    return begin


def restart(copy: Copy) -> None:
    """No request arrives any more, those about Leases included."""
    for line in (copy.actor.line, copy.lease_line):
        line.answer = lambda _: TransportError("no route to host")
        line.drop_all()


def lose_leases(copy: Copy) -> None:
    copy.lease_line.answer = lambda _: TransportError("no route to host")


def lose_leases_and_stall(copy: Copy) -> None:
    lose_leases(copy)
    stall(copy)


def mend(copy: Copy) -> None:
    for line in (copy.actor.line, copy.lease_line):
        whole = Line(line)
        line.answer, line.alter = whole.answer, whole.alter
        line.is_silent, line.is_hanging = whole.is_silent, whole.is_hanging
    # An altered watch stays altered until its end, and a silent one silent.
    copy.actor.line.drop_all()


FAULTS = {
    "F01 watches cut in an event": Fault(cut),
    "F02 watches that end at once": Fault(end_at_once),
    "F03 410 as a status": Fault(gone(status(410, "Expired")), lists=1),
    "F03 410 as an ERROR event": Fault(gone(Response(200, JSON, EXPIRED_EVENT)), lists=1),
    "F04 watches that stall": Fault(stall, seconds=110),
    "F06 each event twice": Fault(twice),
    "F07 older copies of objects": Fault(replay_old),
    "F08 lists of a server that lags": Fault(lag, lists=20),
    "F10 half events": Fault(garbage, lists=20),
    "F12 a continue token that expired": Fault(expire_lists, lists=2),
    "F13 429 for a minute": Fault(refuse(status(429, "TooManyRequests", **{"retry-after": "1"}))),
    "F14 503 for a minute": Fault(refuse(status(503, "ServiceUnavailable"))),
    "F16 403 for a minute": Fault(refuse(status(403, "Forbidden"))),
    "F17 a server that restarts": Fault(restart, seconds=20, lists=1, keeps_shards=False),
    "F26 Leases out of reach": Fault(lose_leases, lists=1, keeps_shards=False),
    "F25 Leases out of reach beside watches that stall": Fault(
        lose_leases_and_stall, seconds=110, lists=1, keeps_shards=False
    ),
}


async def meddle(teams: Teams, place: str) -> None:
    """Change pods and the HPA of a team, and found another team."""
    client = teams.stage.client
    await client.delete(PODS, f"{place}-0", place)
    pod = await client.get(PODS.untyped(), f"{place}-1", place)
    body = {"metadata": {"name": f"{place}-new", "labels": {"app": place}}, "spec": pod["spec"]}
    await client.create(PODS.untyped(), body, place)
    patch = {"spec": {"minReplicas": 7}}
    await client.patch(teams.stage.resource.untyped(), place, place, patch)
    await team(teams.stage, f"{place}-b")
    teams.places.append(f"{place}-b")


async def held_by_server(teams: Teams) -> dict[str, dict[str, str]]:
    """Return the version of each pod, by namespace and name."""
    found: dict[str, dict[str, str]] = {}
    for pod in (await teams.stage.client.list(PODS.untyped())).items:
        meta = pod["metadata"]
        found.setdefault(meta["namespace"], {})[meta["name"]] = meta["resourceVersion"]
    return found


def held_by(copy: Copy) -> dict[str, dict[str, str]]:
    """Return the version of each pod that a copy caches, by namespace and name."""
    found: dict[str, dict[str, str]] = {}
    for cache in copy.actor.operator.caches():
        if cache.resource.plural == PODS.plural:
            for pod in cache:
                meta = pod.metadata
                found.setdefault(meta.namespace, {})[meta.name] = meta.resource_version
    return found


def names(copy: Copy) -> set[str]:
    """Return the names of the pods that a copy caches."""
    return {name for pods in held_by(copy).values() for name in pods}


async def comes_right(teams: Teams) -> None:
    """Check that copies cache what the server holds of their share, and that each HPA is decided by its owner."""
    since = teams.stage.clock.monotonic()
    await teams.pass_time(2 * PERIOD)
    truth = await held_by_server(teams)
    assert sorted(shard for copy in teams.living for shard in copy.shards.held()) == [0, 1, 2, 3]
    for copy in teams.living:
        own = teams.of(copy)
        assert held_by(copy) == {place: truth[place] for place in own}
        assert set(cached(copy, "horizontalpodautoscalers")) == set(cached(copy, "deployments")) == own
        assert teams.decided(copy, since) == own
        assert copy.actor.operator.health() == {}
        assert all(selectors(copy, "pods"))
    assert teams.most_owners == 1


async def replicas(teams: Teams, place: str) -> Any:
    deployment = await teams.stage.client.get(DEPLOYMENTS.untyped(), place, place)
    return deployment["spec"]["replicas"]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_one_copy_costs_its_share_nothing_and_the_others_nothing(fault):
    async def act(teams: Teams) -> None:
        one, two = teams.add("one"), teams.add("two")
        await teams.pass_time(40 + KEEP_SECONDS)
        place = min(teams.of(one))
        before = {copy: lists(copy.actor, "pods") for copy in (one, two)}
        lasting = names(one) - {f"{place}-0"}
        fault.begin(one)
        await meddle(teams, place)
        for _ in range(10):
            await teams.pass_time(fault.seconds / 10)
            assert not fault.keeps_shards or names(one) >= lasting
        mend(one)
        await teams.pass_time(RECOVERS_WITHIN)
        if not fault.keeps_shards:
            await teams.pass_time(LEASE + 2 * LOOK + KEEP_SECONDS)
        await comes_right(teams)
        assert await replicas(teams, place) == 7
        assert lists(one.actor, "pods") - before[one] <= SHARDS_EACH * fault.lists
        if fault.keeps_shards:
            assert lists(two.actor, "pods") == before[two]

    with_teams(act)


@pytest.mark.parametrize("moment", [0.0, LEASE, LEASE + LOOK, LEASE + 2 * LOOK])
def test_f21_a_copy_killed_while_it_takes_a_share_over_is_replaced_too(moment):
    """The second is killed around the moment at which it lists what the first left."""

    async def act(teams: Teams) -> None:
        one, two, three = (teams.add(name) for name in ("one", "two", "three"))
        await teams.pass_time(60)
        one.crash()
        await teams.pass_time(moment)
        two.crash()
        await teams.pass_time(2 * (LEASE + 3 * LOOK) + PERIOD)
        assert teams.of(three) == set(PLACES)
        await comes_right(teams)

    with_teams(act)


@pytest.mark.parametrize("plural", ["pods", "horizontalpodautoscalers"])
def test_f14_a_share_whose_pods_or_hpas_are_not_listed_is_not_decided(plural):
    """A copy that takes a share over decides nothing of it before these lists, and all of it after them."""

    async def act(teams: Teams) -> None:
        one, two = teams.add("one"), teams.add("two")
        await teams.pass_time(40 + KEEP_SECONDS)
        own, orphaned = teams.of(two), teams.of(one)
        two.actor.line.answer = lambda request: (
            status(503, "ServiceUnavailable")
            if is_list(request) and request.path.endswith(f"/{plural}")
            else None
        )
        one.crash()
        killed = teams.stage.clock.monotonic()
        await teams.pass_time(LEASE + 3 * LOOK + 3 * PERIOD)
        assert teams.of(two) == own | orphaned
        assert teams.decided(two, killed) == own
        mend(two)
        await teams.pass_time(RECOVERS_WITHIN)
        await comes_right(teams)

    with_teams(act)


@pytest.mark.parametrize("seed", range(3))
def test_f01_to_f26_in_random_order_on_all_copies(seed):
    """Faults begin and end on any copy at any time, while pods change; then everything is calm."""

    async def act(teams: Teams) -> None:
        chance = Random(seed)
        for number in range(3):
            teams.add(f"copy {number}")
        await teams.pass_time(40)
        for _ in range(8):
            place = chance.choice(PLACES)
            chance.choice(list(FAULTS.values())).begin(chance.choice(teams.copies))
            await touch(teams, place, f"{place}-{chance.randrange(3)}")
            await teams.pass_time(chance.choice([1, 5, 20, 60]))
            if chance.random() < 0.5:
                mend(chance.choice(teams.copies))
        for copy in teams.copies:
            mend(copy)
        await teams.pass_time(RECOVERS_WITHIN + LEASE + 2 * LOOK + KEEP_SECONDS)
        await comes_right(teams)

    with_teams(act)


async def touch(teams: Teams, place: str, name: str) -> None:
    """Delete a pod, or create it again."""
    client = teams.stage.client
    held = (await held_by_server(teams)).get(place, {})
    if name in held and len(held) > 1:
        await client.delete(PODS, name, place)
    elif name not in held:
        spec = {"containers": [{"name": "app", "image": "none", "resources": {"requests": {"cpu": "100m"}}}]}
        body = {"metadata": {"name": name, "labels": {"app": place}}, "spec": spec}
        await client.create(PODS.untyped(), body, place)
