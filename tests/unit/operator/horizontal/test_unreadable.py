"""HPAs that cannot be decoded: a failed write is tried again later, and hides no other HPA."""

from types import SimpleNamespace
from typing import Any

from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.cache.informer import UnreadableObject
from trimtab.model.status import Status
from trimtab.model.times import format_time
from trimtab.operator.horizontal.kinds import OWN_HPAS
from trimtab.operator.horizontal.unreadable import RETRY_SECONDS, UnreadableHpas

GONE = errors.NotFound("reading", Status(code=404, reason="NotFound"))


class World:
    """HPAs that cannot be decoded, with the API server and the owner of them, in one."""

    def __init__(self, *names: str) -> None:
        self.clock = VirtualClock()
        self.notes = {
            ("shop", name): UnreadableObject(f"uid-{name}", "1", "the target is too large") for name in names
        }
        self.conditions: dict[str, list[dict[str, Any]]] = {}
        self.failures: dict[str, Exception] = {}
        self.uids: dict[str, str] = {}
        self.owned = set(names)
        self.written: list[str] = []
        informer = SimpleNamespace(counts=SimpleNamespace(unreadable=self.notes))
        cache = SimpleNamespace(resource=OWN_HPAS, informers=lambda: [("shop", informer)])
        other = SimpleNamespace(resource=SimpleNamespace(kind="Pod"), informers=lambda: [("shop", informer)])
        caches: Any = [other, cache]
        owner: Any = self
        self.hpas = UnreadableHpas(self.clock, caches, owner)

    def owns(self, key: str) -> bool:
        return key.removeprefix("shop/") in self.owned

    def client_for(self, _key: str) -> "World":
        return self

    async def get(self, _resource: Any, name: str, _namespace: str) -> Any:
        if failure := self.failures.get(name):
            raise failure
        meta = {"uid": self.uids.get(name, f"uid-{name}"), "resourceVersion": "5"}
        return {"metadata": meta, "status": {"conditions": self.conditions.get(name, [])}}

    async def patch(
        self, _resource: Any, name: str, _namespace: str, body: Any, *, subresource: str, preconditions: Any
    ) -> None:
        assert subresource == "status"
        assert (preconditions.uid, preconditions.resource_version) == (f"uid-{name}", "5")
        self.written.append(name)
        self.conditions[name] = body["status"]["conditions"]

    def report(self, *, after: float = 0.0) -> list[str]:
        """Report if something is to be reported; return the HPAs that were written."""
        self.clock.advance(after)
        self.written.clear()
        if self.hpas.has_unreported():
            self.clock.run(self.hpas.report())
        return list(self.written)


def test_a_failed_write_is_tried_again_and_does_not_stop_the_others():
    world = World("a", "b")
    world.failures["a"] = GONE
    assert world.report() == ["b"]
    world.failures.clear()
    assert world.report(after=RETRY_SECONDS - 1) == []
    assert world.report(after=1) == ["a"]
    assert world.report(after=RETRY_SECONDS) == []


def test_an_hpa_is_reported_again_for_another_reason_or_after_it_was_readable():
    world = World("a")
    assert world.report() == ["a"]
    world.notes["shop", "a"] = UnreadableObject("uid-a", "2", "another reason")
    assert world.report(after=RETRY_SECONDS) == ["a"]
    assert world.conditions["a"][0]["message"].endswith("another reason")
    note = world.notes.pop(("shop", "a"))
    assert world.report(after=RETRY_SECONDS) == []
    world.conditions.clear()
    world.notes["shop", "a"] = note
    assert world.report(after=RETRY_SECONDS) == ["a"]


def test_an_hpa_of_another_replica_and_a_new_object_of_the_same_name_are_left_alone():
    world = World("a", "b")
    world.owned = {"b"}
    world.uids["b"] = "another"
    assert world.report() == []
    assert world.conditions == {}


def test_the_condition_keeps_its_time_while_it_is_false_and_leaves_the_others():
    world = World("a", "b", "c")
    able = {"type": "AbleToScale", "status": "True", "lastTransitionTime": "then"}
    active = {"type": "ScalingActive", "lastTransitionTime": "then"}
    world.conditions["a"] = [{**active, "status": "False"}, able]
    world.conditions["b"] = [{**active, "status": "True"}, able]
    assert world.report() == ["a", "b", "c"]
    now = format_time(world.clock.now())
    for name, since in (("a", "then"), ("b", now), ("c", now)):
        *others, new = world.conditions[name]
        assert others == ([] if name == "c" else [able])
        assert (new["status"], new["reason"]) == ("False", "SpecUnreadable")
        assert new["lastTransitionTime"] == since


def test_a_condition_that_is_already_there_is_not_written_again():
    world = World("a")
    world.report()
    again = World("a")
    again.conditions = world.conditions
    assert again.report() == []
