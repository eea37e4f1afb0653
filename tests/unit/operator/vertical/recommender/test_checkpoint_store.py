"""Checkpoint objects on the lab's server: who owns a name, which orphans are deleted, and what a failure leaves."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.fence import NoFence
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.compat import VPA_1_8
from trimtab.lab.apiserver.server import Server
from trimtab.model.core.meta import NamespacedName, ObjectMeta
from trimtab.model.crds import all_crds
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpointSpec, VerticalPodAutoscalerCheckpointStatus
from trimtab.operator.ownership import SingleOwner
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS
from trimtab.operator.vertical.recommender.checkpoint_store import (
    CheckpointOptions,
    CheckpointSchedule,
    CheckpointStore,
)
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates

CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", Json, False
)
BASE, OTHER = NamespacedName("shop", "base"), NamespacedName("shop", "other")


def checkpoint(name: str = "base-app", vpa: str = "base", samples: int = 1, **meta: Any) -> Checkpoint:
    container = name.rpartition("-")[2]
    return Checkpoint(
        metadata=ObjectMeta(name=name, namespace=meta.pop("namespace", "shop"), **meta),
        spec=VerticalPodAutoscalerCheckpointSpec(vpa_object_name=vpa, container_name=container),
        status=VerticalPodAutoscalerCheckpointStatus(total_samples_count=samples),
    )


class World:
    """A server with the VPA kinds, and a store that may be told to fail."""

    def __init__(self, client: Client, owner: Any = None, **options: Any) -> None:
        self.client = client
        states = ShardedClusterStates(ClusterState, owner or SingleOwner(client, NoFence()))
        states.sync_shards()
        self.store = CheckpointStore(client, states, CheckpointOptions(**options))

    async def write(self, *checkpoints: Checkpoint) -> Any:
        return await self.store.write(checkpoints, 10)

    async def names(self) -> dict[str, int]:
        listed = await self.client.list(CHECKPOINTS)
        return {item.metadata.key: item.status.total_samples_count for item in listed.items}

    async def make_vpa(self, name: str, namespace: str = "shop") -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        body = {"metadata": {"name": name}, "spec": {"targetRef": target}}
        body |= {"apiVersion": VPAS.api_version, "kind": VPAS.kind}
        await self.client.create(VPAS.untyped(), body, namespace)

    async def collect(self, *vpas: NamespacedName, is_left_over: Any = lambda _: False) -> list[str]:
        return await self.store.collect_orphans(frozenset(vpas), [""], is_left_over)


def play(scenario: Callable[[World], Awaitable[None]], **options: Any) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            client = Client(clock, InProcessTransport(server, headers=headers), seed=1)
            for crd in all_crds():
                await client.create(CRDS, crd)
            for namespace in ("shop", "mail"):
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                await client.create(Resource("", "v1", "namespaces", "Namespace", Json, False), body)
            await scenario(World(client, **options))

    clock.run(main())


def test_a_checkpoint_that_another_replica_created_meanwhile_is_updated():
    """The store does not know it, and its name is taken."""

    async def scenario(world: World) -> None:
        await World(world.client).write(checkpoint(samples=1))
        report = await world.write(checkpoint(samples=2))
        assert (report.failed, report.done) == ({}, {BASE})
        assert await world.names() == {"shop/base-app": 2}

    play(scenario)


@pytest.mark.parametrize("annotations", [{}, {"who": "me"}])
def test_a_checkpoint_that_was_deleted_is_created_again(annotations):
    async def scenario(world: World) -> None:
        await world.write(checkpoint(samples=1))
        await world.client.delete(CHECKPOINTS, "base-app", "shop")
        report = await world.write(checkpoint(samples=2, annotations=annotations))
        assert report.failed == {}
        report = await world.write(checkpoint(samples=3, annotations=annotations))
        assert report.failed == {}
        assert await world.names() == {"shop/base-app": 3}

    play(scenario)


def test_a_checkpoint_that_a_user_changed_is_written_at_the_second_try():
    async def scenario(world: World) -> None:
        await world.write(checkpoint(samples=1))
        mark = {"metadata": {"annotations": {"who": "me"}}}
        await world.client.patch(CHECKPOINTS.untyped(), "base-app", "shop", mark)
        report = await world.write(checkpoint(samples=2))
        assert report.failed == {}
        assert await world.names() == {"shop/base-app": 2}
        stored = await world.client.get(CHECKPOINTS, "base-app", "shop")
        assert stored.metadata.annotations == {"who": "me"}

    play(scenario)


def test_the_name_of_another_owner_is_left_alone_and_hides_no_other_checkpoint():
    """VPA `a` with container `b-c` and VPA `a-b` with container `c` have one name."""

    async def scenario(world: World) -> None:
        await World(world.client).write(checkpoint("other-base-app", "other", 7))
        report = await world.write(checkpoint("other-base-app", "other-base", 2), checkpoint(samples=3))
        assert set(report.failed) == {"shop/other-base-app"}
        assert (report.done, report.undone) == ({BASE}, {NamespacedName("shop", "other-base")})
        (advice,) = report.collisions.values()
        assert "belongs to container 'app' of VPA 'other'; rename one of the VPAs" in advice
        assert await world.names() == {"shop/other-base-app": 7, "shop/base-app": 3}

    play(scenario)


def test_a_refused_checkpoint_whose_owner_cannot_be_read_is_reported_without_advice(monkeypatch):
    async def scenario(world: World) -> None:
        await World(world.client).write(checkpoint("other-base-app", "other", 7))
        get, answers = Client.get, [True, False]

        async def once(self: Client, *args: Any, **more: Any) -> Any:
            if not answers.pop(0):
                raise errors.TransportError("no answer")
            return await get(self, *args, **more)

        with monkeypatch.context() as patched:
            patched.setattr(Client, "get", once)
            report = await world.write(checkpoint("other-base-app", "other-base", 2))
        assert answers == []
        assert (set(report.failed), report.collisions) == ({"shop/other-base-app"}, {})
        assert report.undone == {NamespacedName("shop", "other-base")}

    play(scenario)


def test_equal_content_is_written_once_and_a_failed_write_again():
    async def scenario(world: World) -> None:
        sent = world.client.sender.counts.sent
        await world.write(checkpoint(samples=1))
        before = dict(sent)
        await world.write(checkpoint(samples=1))
        assert dict(sent) == before
        plain = checkpoint(samples=1)
        later = replace(plain.status, last_update_time=world.client.clock.now())
        await world.write(replace(plain, status=later))
        assert dict(sent) == before, "the time alone is no change"
        world.store.keep([OTHER])
        await world.write(checkpoint(samples=1))
        assert dict(sent) != before, "nothing is kept of a VPA that is gone"

    play(scenario)


def test_checkpoints_are_read_by_their_vpa():
    async def scenario(world: World) -> None:
        await world.write(
            checkpoint(samples=1),
            checkpoint("base-log", samples=2),
            checkpoint("other-app", "other", 3),
            checkpoint(namespace="mail", samples=4),
        )
        stored = await world.store.read(
            [BASE, NamespacedName("mail", "base"), NamespacedName("shop", "none")]
        )
        counts = {
            str(vpa): sorted(item.status.total_samples_count for item in items)
            for vpa, items in stored.items()
        }
        assert counts == {"shop/base": [1, 2], "mail/base": [4]}
        assert world.store.refused == {}

    play(scenario)


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


@pytest.mark.parametrize("compat", [None, VPA_1_8])
def test_an_empty_list_of_vpas_deletes_nothing_unless_as_upstream(compat):
    async def scenario(world: World) -> None:
        await world.write(checkpoint())
        for _ in range(3):
            await world.collect()
        assert set(await world.names()) == ({"shop/base-app"} if compat is None else set())

    play(scenario, **({} if compat is None else {"compat": compat}))


def test_a_checkpoint_of_a_lost_container_is_deleted_beside_its_vpa():
    async def scenario(world: World) -> None:
        await world.make_vpa("base")
        await world.write(checkpoint(), checkpoint("base-lost"))

        def is_left_over(found: Any) -> bool:
            return bool(found.spec.container_name == "lost")

        assert await world.collect(BASE, is_left_over=is_left_over) == []
        assert await world.collect(BASE, is_left_over=is_left_over) == ["shop/base-lost"]
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


def test_a_due_checkpoint_is_saved_at_once_and_then_spread_over_the_interval():
    clock = VirtualClock()
    schedule = CheckpointSchedule(clock, 600.0)
    vpas = [NamespacedName("shop", f"v{number}") for number in range(40)]
    assert schedule.due(vpas) == vpas
    schedule.saved(vpas)
    clock.advance(299)
    assert schedule.due(vpas) == []
    clock.advance(151)
    assert 0 < len(schedule.due(vpas)) < len(vpas)
    clock.advance(150)
    assert schedule.due(vpas) == vpas
    schedule.saved(vpas)
    clock.advance(599)
    assert schedule.due(vpas) == []
    clock.advance(1)
    assert schedule.due(vpas) == vpas
    schedule.saved(vpas)
    schedule.keep(vpas[:1])
    assert schedule.due(vpas) == vpas[1:], "what is dropped is new again"


@pytest.mark.parametrize(("seconds", "written"), [(0, 1), (1, 2), (60, 4)])
def test_checkpoints_are_written_until_the_deadline_the_oldest_first(seconds, written, monkeypatch):
    async def scenario(world: World) -> None:
        create = Client.create

        async def slowly(self: Client, *args: Any, **more: Any) -> Any:
            await world.client.clock.sleep(0.5)
            return await create(self, *args, **more)

        with monkeypatch.context() as patched:
            patched.setattr(Client, "create", slowly)
            made = [checkpoint(f"base-{letter}") for letter in "dcba"]
            report = await world.store.write(made, seconds)
        assert sorted(await world.names()) == [f"shop/base-{letter}" for letter in "abcd"[:written]]
        assert report.done == {BASE}

    play(scenario, workers=1)


@pytest.mark.parametrize(
    ("end", "is_logged"),
    [(errors.Fenced("no lease"), False), (errors.TransportError("no answer"), True)],
)
def test_a_checkpoint_that_is_not_ours_any_more_is_no_reason_to_warn(end, is_logged, monkeypatch, caplog):
    """Another replica has the VPA now, and saves its history."""

    async def scenario(world: World) -> None:
        async def fail(*_args: Any, **_more: Any) -> Any:
            raise end

        with monkeypatch.context() as patched:
            patched.setattr(Client, "create", fail)
            report = await world.write(checkpoint())
        assert report.failed == {"shop/base-app": str(end)}
        assert (report.done, report.undone) == (set(), {BASE})
        assert ("is not written" in caplog.text) is is_logged
        assert (await world.write(checkpoint())).failed == {}

    play(scenario)


class TwoShards(SingleOwner):
    """Holds shard 1 of two. Objects whose namespace begins with s are in it."""

    def held(self) -> tuple[int, ...]:
        return (1,)

    def share(self, key: str) -> int:
        return int(key.startswith("s"))


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
        world.store._options.share.namespaces = namespaces
        world.store._options.share.is_fixed = is_fixed
        await world.collect()
        assert await world.collect() == (["shop/base-app"] if is_deleted else [])

    play(scenario)


def test_a_failed_question_for_vpas_keeps_the_orphans(caplog):
    async def scenario(world: World) -> None:
        await world.write(checkpoint())
        await world.make_vpa("other", "mail")
        world.store._options.share.is_fixed = False
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
