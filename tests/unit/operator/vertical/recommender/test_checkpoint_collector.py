"""Which checkpoints are deleted, and what a failure leaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.objects import CRDS
from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.operator.vertical.recommender.checkpoint_world import BASE, World, checkpoint, play
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.fence import NoFence
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.ownership import Ownership
from trimtab.operator.vertical.kinds import VPAS


@pytest.mark.parametrize(
    ("options", "deleted"),
    [
        pytest.param({}, ["mail/gone-app", "shop/gone-app"], id="everywhere"),
        pytest.param(
            {"ignored_namespaces": frozenset({"mail"})}, ["shop/gone-app"], id="not in an ignored namespace"
        ),
    ],
)
def test_a_checkpoint_without_its_vpa_is_deleted_at_the_second_look(options, deleted):
    async def scenario(world: World) -> None:
        await world.make_vpa("base")
        await world.write(
            checkpoint(), checkpoint("gone-app", "gone"), checkpoint("gone-app", "gone", namespace="mail")
        )
        assert await world.collect(BASE) == []
        assert sorted(await world.collect(BASE)) == deleted
        assert await world.collect(BASE) == []
        assert set(await world.names()) == {"shop/base-app", "shop/gone-app", "mail/gone-app"} - set(deleted)

    play(scenario, **options)


def test_a_vpa_that_only_the_cache_lacks_keeps_its_checkpoints():
    async def scenario(world: World) -> None:
        await world.make_vpa("other")
        await world.write(checkpoint("other-app", "other"), checkpoint("gone-app", "gone"))
        for _ in range(3):
            await world.collect(BASE)
        assert set(await world.names()) == {"shop/other-app"}

    play(scenario)


@pytest.mark.parametrize("rules", [None, Rules.VPA_1_8])
def test_an_empty_list_of_vpas_deletes_nothing_unless_as_upstream(rules):
    async def scenario(world: World) -> None:
        await world.write(checkpoint())
        for _ in range(3):
            await world.collect()
        assert set(await world.names()) == ({"shop/base-app"} if rules is None else set())

    play(scenario, **({} if rules is None else {"rules": rules}))


def test_a_checkpoint_of_a_lost_container_is_deleted_beside_its_vpa():
    async def scenario(world: World) -> None:
        await world.make_vpa("base")
        await world.write(checkpoint(), checkpoint("base-lost"))

        def is_left_over(found: Any) -> bool:
            return bool(found.spec.container_name == "lost")

        world.collector.is_left_over = is_left_over  # type: ignore[method-assign,assignment]
        assert await world.collect(BASE) == []
        assert await world.collect(BASE) == ["shop/base-lost"]
        assert set(await world.names()) == {"shop/base-app"}

    play(scenario)


@pytest.mark.parametrize("failing", ["list", "get", "delete"])
def test_an_orphan_outlives_a_request_that_fails(failing, caplog, monkeypatch):
    """Deleted history cannot be restored, so that a doubt keeps it."""

    async def scenario(world: World) -> None:
        await world.write(checkpoint("gone-app", "gone"), checkpoint("left-app", "left"))
        await world.collect(BASE)

        async def fail(*_args: Any, **_more: Any) -> Any:
            raise errors.TransportError("no answer")

        with monkeypatch.context() as patched:
            patched.setattr(Client, failing, fail)
            assert await world.collect(BASE) == []
        assert "no answer" in caplog.text
        assert len(await world.names()) == 2
        assert len(await world.collect(BASE)) == 2

    play(scenario)


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["ours", "as upstream"])
def test_an_orphan_outlives_the_definition_of_vpas(rules, caplog):
    """While the CRD is replaced, the server answers every read of a VPA with 404."""

    async def scenario(world: World) -> None:
        await world.write(checkpoint("gone-app", "gone"))
        await world.collect(BASE)
        name = f"{VPAS.plural}.{VPAS.group}"
        definition = await world.client.get(CRDS, name)
        await world.client.delete(CRDS, name)
        assert await world.collect(BASE) == []
        assert set(await world.names()) == {"shop/gone-app"}
        assert "checkpoint shop/gone-app is kept: its VPA cannot be read" in caplog.text
        fresh = {"name": name, "annotations": definition["metadata"].get("annotations", {})}
        await world.client.create(CRDS, definition | {"metadata": fresh})
        assert await world.collect(BASE) == ["shop/gone-app"]

    play(scenario, rules=rules)


class TwoShards(Ownership):
    """Holds shard 1 of two. Objects whose namespace begins with s are in it."""

    def held(self) -> tuple[int, ...]:
        return (1,)

    def share(self, key: str) -> int:
        return int(key.startswith("s"))

    @contextmanager
    def writing(self, share: int, *, is_last: bool = False) -> Iterator[Client]:
        with super().writing(0, is_last=is_last) as client:
            yield client


def test_orphans_of_another_shard_are_left_to_its_owner():
    """Its VPA may be one that this replica has not listed. So it is neither deleted nor read."""

    async def scenario(world: World) -> None:
        await world.write(checkpoint(namespace="shop"), checkpoint(namespace="mail"))
        sent: list[str] = []
        client = world.client
        read = client.get

        async def get(resource: Any, name: str, namespace: str) -> Any:
            sent.append(namespace)
            return await read(resource, name, namespace)

        sharded = World(client, TwoShards(client, NoFence()))
        client.get = get  # type: ignore[method-assign,assignment]  # notes what is read
        assert [await sharded.collect(NamespacedName("shop", "other")) for _ in range(2)] == [
            [],
            ["shop/base-app"],
        ]
        assert (sent, set(await world.names())) == (["shop"], {"mail/base-app"})

    play(scenario)


@pytest.mark.parametrize(
    ("namespaces", "is_fixed", "exists", "is_deleted"),
    [
        pytest.param((), False, True, True, id="another shard has a VPA"),
        pytest.param((), False, False, False, id="no shard has one"),
        pytest.param((), True, True, False, id="the whole cluster is cached, and none is known"),
        pytest.param(("shop",), False, True, False, id="other namespaces may not be listed"),
    ],
)
def test_orphans_go_without_a_known_vpa_only_if_another_shard_has_one(
    namespaces, is_fixed, exists, is_deleted
):
    async def scenario(world: World) -> None:
        await world.write(checkpoint())
        if exists:
            await world.make_vpa("other", "mail")
        world.options.share.namespaces = namespaces
        world.options.share.is_fixed = is_fixed
        await world.collect()
        assert await world.collect() == (["shop/base-app"] if is_deleted else [])

    play(scenario)


def test_a_failed_question_for_vpas_keeps_the_orphans(caplog):
    async def scenario(world: World) -> None:
        await world.write(checkpoint())
        await world.make_vpa("other", "mail")
        world.options.share.is_fixed = False
        await world.collect()

        async def send(_act: str, _request: Any) -> Any:
            raise errors.TransportError("no route")

        world.client.sender.send, works = send, world.client.sender.send  # type: ignore[method-assign,assignment]
        assert await world.collect() == []
        world.client.sender.send = works  # type: ignore[method-assign]
        assert await world.collect() == [], "the question was not answered, so the count begins anew"
        assert await world.collect() == ["shop/base-app"]

    play(scenario)
    assert "orphaned checkpoints are not collected: no route" in caplog.text


class Vpas(list[Any]):
    """A cache of VPAs in some namespaces, of which some cannot be listed."""

    def __init__(self, *namespaces: str, doubtful: frozenset[str] = frozenset()) -> None:
        super().__init__([vpa("base")])
        self._namespaces = namespaces
        self._doubtful = doubtful

    def doubtful(self) -> frozenset[str]:
        return self._doubtful

    def informers(self) -> list[tuple[str, None]]:
        return [(namespace, None) for namespace in self._namespaces]


def test_orphans_are_collected_once_per_interval_and_part_of_the_share():
    collected: list[tuple[float, frozenset[NamespacedName], list[str]]] = []

    async def scenario(world: World) -> None:
        clock = world.client.clock
        began = clock.monotonic()

        async def collect(names: Any, parts: Any) -> list[str]:
            collected.append((clock.monotonic() - began, names, parts))
            return []

        world.collector.collect = collect  # type: ignore[method-assign,assignment]
        vpas: Any = Vpas("shop", "mail", doubtful=frozenset({"mail"}))
        await world.collector.collect_due(vpas, 60.0)
        await clock.sleep(59)
        await world.collector.collect_due(vpas, 60.0)
        vpas = Vpas("shop", "mail")
        await world.collector.collect_due(vpas, 60.0)
        await clock.sleep(1)
        await world.collector.collect_due(vpas, 60.0)

    play(scenario)
    names = frozenset({BASE})
    assert collected == [(0.0, names, ["shop"]), (59.0, names, ["mail"]), (60.0, names, ["shop"])]
