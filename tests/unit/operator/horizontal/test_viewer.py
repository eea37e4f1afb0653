"""Decisions without writes: what of many HPAs is decided, and that one failure hides no other."""

from typing import Any

import msgspec

from tests.unit.decide.horizontal.builders import NOW, average, external, observe, series
from tests.unit.operator.horizontal.fakes import edit_spec, hpa_state, no_rivals, queries_of, target
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.decide.horizontal import Record
from trimtab.model.hpa.dry_run import DRY_RUN, MODE_ANNOTATION
from trimtab.operator.horizontal.viewer import DryRunDecider

LOST = errors.TransportError("no answer")


class World:
    """A decider about HPAs that need 8 replicas, and all that it asks, in one."""

    def __init__(self, *names: str) -> None:
        self.clock = VirtualClock(NOW)
        self.rivals = no_rivals()
        self.states = [hpa_state(name, "shop", external(average("10"))) for name in names]
        self.registered: list[str] = []
        self.no_target: set[str] = set()
        self.unobserved: set[str] = set()
        self.edited: set[str] = set()
        self.fetched: list[Any] = []
        collaborator: Any = self
        self.decider = DryRunDecider(self.clock, collaborator, collaborator, collaborator)

    def records(self) -> dict[str, Record]:
        """Return the record of each HPA that was decided about."""

        async def main() -> dict[str, Record]:
            return {
                state.hpa.metadata.name: record
                async for state, record in self.decider.decide_all(self.states)
            }

        return self.clock.run(main())

    def decide_all(self) -> dict[str, int]:
        """Return the desired replicas of each HPA that was decided about."""
        return {name: record.decision.desired for name, record in self.records().items()}

    async def find_target(self, state: Any) -> Any:
        if state.hpa.metadata.name in self.no_target:
            raise LOST
        return target(4)

    def register_target(self, state: Any, _target: Any) -> None:
        self.registered.append(state.hpa.metadata.name)

    async def resolve_queries(self, state: Any, resolved: Any) -> Any:
        return queries_of(state, resolved)

    async def fetch(self, queries: Any) -> Any:
        self.fetched.append(set(queries))
        for state in self.states:
            if state.hpa.metadata.name in self.edited:
                edit_spec(state, max_replicas=5)
        return {}

    def matching_pods(self, _state: Any) -> Any:
        return ()

    async def find_owners(self, state: Any, _pods: Any) -> Any:
        if state.hpa.metadata.name in self.unobserved:
            raise LOST
        return {}

    def observe(self, state: Any, *_rest: Any) -> Any:
        return observe(state.hpa, 4, series(80))


def test_every_hpa_is_decided_about_and_equal_queries_are_sent_once():
    world = World("a", "b")
    assert world.decide_all() == {"a": 8, "b": 8}
    assert world.registered == ["a", "b"]
    assert [len(queries) for queries in world.fetched] == [1]


def test_an_hpa_that_changed_while_metrics_were_fetched_is_left_out():
    world = World("a", "b", "c")
    world.edited = {"b"}
    assert world.decide_all() == {"a": 8, "c": 8}


def test_an_hpa_whose_inputs_cannot_be_read_is_left_out_with_a_warning(caplog):
    world = World("a", "b", "c", "d")
    world.no_target, world.unobserved = {"a"}, {"c"}
    assert world.decide_all() == {"b": 8, "d": 8}
    assert world.registered == ["b", "c", "d"]
    assert [record.getMessage() for record in caplog.records] == [
        f"shop/{name}: dry run failed: no answer" for name in ("a", "c")
    ]


def test_only_an_hpa_in_dry_run_shows_what_it_would_scale_to_instead_of_scaling():
    world = World("acting", "trying")
    hpa = world.states[1].hpa
    marked = msgspec.structs.replace(hpa.metadata, annotations={MODE_ANNOTATION: DRY_RUN})
    world.states[1].replace_hpa(msgspec.structs.replace(hpa, metadata=marked), "")
    records = world.records()
    found = {name: (record.is_dry_run, record.decision.scale_to) for name, record in records.items()}
    assert found == {"acting": (False, 8), "trying": (True, None)}
    assert records["trying"].decision.desired == 8
