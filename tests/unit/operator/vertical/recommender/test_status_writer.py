"""Statuses of VPAs are written each by itself, and a failure is known until the next step."""

from contextlib import nullcontext
from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import recommended, vpa
from tests.unit.operator.horizontal.fakes import api_error
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.model.core.meta import NamespacedName
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.recommender.status_builder import StatusChange
from trimtab.operator.vertical.recommender.status_writer import StatusWriter


class World:
    """A client whose writes end as they are told, by the name of the VPA."""

    def __init__(self, *, is_dry_run: bool = False, workers: int = 2, **ends: Exception) -> None:
        self.ends = ends
        self.written: list[str] = []
        self.noted: list[str] = []
        self.lost: set[str] = set()
        itself: Any = self
        self.writer = StatusWriter(itself, itself, workers, is_dry_run=is_dry_run)

    def holds(self, name: NamespacedName) -> bool:
        return name.name not in self.lost

    def writing(self, _name: NamespacedName) -> Any:
        return nullcontext(self)

    async def patch(self, _resource: Any, name: str, *_rest: Any, **_options: Any) -> Any:
        if name in self.ends:
            raise self.ends[name]
        self.written.append(name)
        return vpa(name)

    def note_written(self, vpa: VerticalPodAutoscaler, _version: str) -> None:
        self.noted.append(vpa.key)

    def write(self, *names: str, memory: str = "1Gi") -> None:
        made = [vpa(name, recommended(memory)) for name in names]
        VirtualClock().run(self.writer.write([StatusChange(each, each.status) for each in made]))


@pytest.mark.parametrize("workers", [1, 3])
def test_every_status_is_written_once_and_noted(workers):
    world = World(workers=workers)
    world.write("a", "b", "c", "d")
    assert sorted(world.written) == ["a", "b", "c", "d"]
    assert sorted(world.noted) == [f"shop/{name}" for name in "abcd"]
    assert world.writer.failures == {}


@pytest.mark.parametrize(
    ("end", "is_failure"),
    [
        pytest.param(api_error(errors.NotFound, 404), False, id="deleted"),
        pytest.param(errors.Fenced("no lease"), False, id="not ours any more"),
        pytest.param(api_error(errors.Conflict, 409), False, id="changed meanwhile"),
        pytest.param(api_error(errors.Forbidden, 403), True, id="a missing right"),
        pytest.param(errors.TransportError("no answer"), True, id="no answer"),
    ],
)
def test_a_status_that_cannot_be_written_keeps_no_other_back(end, is_failure):
    world = World(workers=1, a=end)
    world.write("a", "b")
    assert (world.written, world.noted) == (["b"], ["shop/b"])
    assert world.writer.failures == ({"shop/a": str(end)} if is_failure else {})
    world.ends.clear()
    world.write("a")
    assert world.writer.failures == {}


def test_a_vpa_of_another_replica_is_left_to_it():
    world = World(workers=1)
    world.lost = {"a"}
    world.write("a", "b")
    assert world.written == ["b"]


def test_a_dry_run_logs_each_target_when_it_changes(caplog):
    caplog.set_level("INFO")
    world = World(is_dry_run=True)
    for memory in ("1Gi", "1Gi", "2Gi"):
        world.write("a", memory=memory)
    logged = [(record.facts["vpa"], record.facts["targets"]["app"]["memory"]) for record in caplog.records]
    assert logged == [("shop/a", "1Gi"), ("shop/a", "2Gi")]
    assert world.written == []
