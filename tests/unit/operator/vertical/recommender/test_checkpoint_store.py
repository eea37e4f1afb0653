"""Checkpoint objects on the lab's server: who owns a name, and what a failure leaves."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.operator.vertical.recommender.checkpoint_world import BASE, OTHER, World, checkpoint, play
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.vertical.kinds import CHECKPOINTS


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
