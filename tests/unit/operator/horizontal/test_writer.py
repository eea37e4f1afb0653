"""Writes: scales before statuses within the slots, each write once, and what is known after a failed one."""

from typing import Any

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import NOW, average, external, marked, observe, series
from tests.unit.decide.horizontal.builders import run as decide_on
from tests.unit.operator.horizontal.fakes import api_error, edit_spec, hpa_state, target
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.leases.fence import Epoch
from trimtab.decide.horizontal import decide
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.memory import dumps
from trimtab.decide.horizontal.reasons import Code, Reason
from trimtab.decide.horizontal.records.record import dumps as dumps_record
from trimtab.decide.horizontal.records.record import replay
from trimtab.decide.horizontal.standing import WriteReason
from trimtab.model.hpa.annotations import MEMORY_ANNOTATION, REASON_ANNOTATION
from trimtab.model.hpa.dry_run import MODE_ANNOTATION
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.horizontal.observe import Snapshot, StaleObservation
from trimtab.operator.horizontal.targets import (
    ResolvedTarget,
    TargetBusyError,
    TargetChangedError,
)
from trimtab.operator.horizontal.write_slots import WriteSlots
from trimtab.operator.horizontal.writer import PendingWrite, ScaleUnknown, Writer, WriteRules, status_patch

CONFLICT = api_error(errors.Conflict, 409)
FORBIDDEN = api_error(errors.Forbidden, 403)
LOST = errors.TransportError("the response was lost")
EPOCH = Epoch(VirtualClock(NOW))


class World:
    """One HPA whose metric asks for 8 instead of 4 replicas, and servers that fail as they are told."""

    def __init__(self, *, scale=None, read=None, status=None, dry_run=False, max_age=None) -> None:
        self.clock = VirtualClock()
        self.failures = {"scale": scale, "status": status}
        self.found = read
        self.done: list[str] = []
        self.doubted = False
        self.state = hpa_state("web", "shop", external(average("10")))
        self.state.memory.mark_confirmed()
        anything: Any = self
        rules = WriteRules(WriteSlots(1), dry_run, max_age)
        self.writer = Writer(self.clock, lambda _key: anything, anything, anything, anything, rules)

    def _do(self, what: str) -> None:
        if (failure := self.failures.get(what)) is not None:
            raise failure
        self.done.append(what)

    async def write(self, _client, _target, _namespace, _replicas) -> None:
        self._do("scale")

    async def read(self, _reference, _namespace) -> ResolvedTarget:
        return ResolvedTarget() if self.found is None else target(self.found)

    def doubt(self, _target) -> None:
        self.doubted = True

    async def patch(self, *_args, **_preconditions):
        self._do("status")
        return self.state.hpa

    def note_written(self, _state, _hpa) -> None:
        pass

    def note_dry_run(self, _state, _status) -> None:
        pass

    def event(self, _about, _type, reason, _message) -> None:
        self.done.append(reason)

    def apply(self, replicas: int = 4) -> PendingWrite:
        observation = observe(self.state.hpa, replicas, series(80))
        write = self.writer.prepare(
            self.state, Snapshot(target(replicas), observation, NOW, EPOCH), decide(observation, NOW)
        )
        VirtualClock().run(self.writer.apply(self.state, write))
        return write


def test_the_scale_comes_first_then_the_status_then_the_events():
    world = World()
    write = world.apply()
    assert world.done == ["scale", "status", "SuccessfulRescale"]
    assert (write.scale_error, write.status_error, write.is_scale_lost) == (None, None, False)


@pytest.mark.parametrize(
    ("how", "scale_error", "is_lost", "done"),
    [
        pytest.param({"scale": FORBIDDEN}, "no", False, ["status", "FailedRescale"], id="a rejected scale"),
        pytest.param(
            {"scale": TargetBusyError("busy")},
            "busy",
            False,
            ["status", "FailedRescale"],
            id="a target that keeps changing",
        ),
        pytest.param(
            {"scale": LOST, "read": 8},
            None,
            True,
            ["status", "SuccessfulRescale"],
            id="a lost response to a scale that was applied",
        ),
        pytest.param(
            {"scale": LOST, "read": 4},
            "the response was lost",
            True,
            ["status", "FailedRescale"],
            id="a lost response to a scale that was not applied",
        ),
    ],
)
def test_status_and_events_show_whether_the_scale_was_written(how, scale_error, is_lost, done):
    world = World(**how)
    write = world.apply()
    assert (write.scale_error, write.is_scale_lost, world.done) == (scale_error, is_lost, done)


@pytest.mark.parametrize(
    ("how", "raised", "is_doubted"),
    [
        pytest.param(
            {"scale": TargetChangedError("8 by hand")}, StaleObservation, False, id="scaled by a user"
        ),
        pytest.param(
            {"scale": LOST, "read": None}, ScaleUnknown, True, id="lost, and the scale cannot be read"
        ),
        pytest.param({"scale": errors.Fenced("no lease")}, errors.Fenced, False, id="the lease was lost"),
    ],
)
def test_nothing_else_is_written_after_a_scale_that_must_not_be_reported(how, raised, is_doubted):
    world = World(**how)
    with pytest.raises(raised):
        world.apply()
    assert (world.done, world.doubted) == ([], is_doubted)


@pytest.mark.parametrize("has_intent", [False, True], ids=["confirming", "announcing"])
@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_an_hpa_that_changes_while_its_first_scale_is_prepared_is_not_scaled(change, has_intent):
    """The scale follows a read of the HPA, or a write of its status. Either takes a while."""
    world = World()
    state = world.state

    async def meanwhile(*_args: Any, **_more: Any) -> Any:
        hpa = state.hpa
        if change == "edited":
            edit_spec(state, max_replicas=5)
        else:
            state.is_deleted = True
        return hpa

    if has_intent:
        world.patch = meanwhile  # type: ignore[method-assign]  # the write of the status that announces the scale
    else:
        state.memory.is_confirmed = False
        world.get = meanwhile  # type: ignore[attr-defined]  # the read that confirms the HPA
    observation = observe(state.hpa, 4, series(80))
    decision = decide(observation, NOW)
    if has_intent:
        decision = msgspec.structs.replace(decision, intent=decision.status)
    write = world.writer.prepare(state, Snapshot(target(4), observation, NOW, EPOCH), decision)
    with pytest.raises(StaleObservation, match="the HPA changed since it was read"):
        VirtualClock().run(world.writer.apply(state, write))
    assert world.done == []


def test_a_conflict_of_the_status_alone_starts_over_and_after_a_scale_waits_for_the_next_sync():
    world = World(status=CONFLICT)
    write = world.apply()
    assert write.status_error == "the autoscaler was changed meanwhile"
    assert world.done == ["scale", "SuccessfulRescale"]
    with pytest.raises(StaleObservation):
        World(status=CONFLICT).apply(replicas=8)


def test_a_lost_lease_ends_every_kind_of_write():
    for how, world in (
        ("status", World(status=errors.Fenced("no lease"))),
        ("scale", World(scale=errors.Fenced("no lease"))),
    ):
        with pytest.raises(errors.Fenced):
            world.apply()
        assert how not in world.done
    world = World(status=errors.Fenced("no lease"))
    observation = observe(world.state.hpa, 4, series(80))
    decision = decide(observation, NOW)
    announced = msgspec.structs.replace(decision, intent=decision.status)
    write = world.writer.prepare(world.state, Snapshot(target(4), observation, NOW, EPOCH), announced)
    with pytest.raises(errors.Fenced):
        VirtualClock().run(world.writer.apply(world.state, write))
    assert world.done == []


@pytest.mark.parametrize("failure", [FORBIDDEN, LOST])
def test_a_scale_that_cannot_be_announced_is_not_written(failure):
    world = World(status=failure)
    observation = observe(world.state.hpa, 4, series(80))
    decision = decide(observation, NOW)
    announced = msgspec.structs.replace(decision, intent=decision.status)
    write = world.writer.prepare(world.state, Snapshot(target(4), observation, NOW, EPOCH), announced)
    VirtualClock().run(world.writer.apply(world.state, write))
    assert write.scale_error
    assert "scale" not in world.done


@pytest.mark.parametrize(
    ("failure", "is_paused"),
    [(api_error(errors.ServerError, 500), True), (FORBIDDEN, False), (LOST, False)],
)
def test_a_status_that_the_server_failed_to_write_is_tried_again_after_a_pause(failure, is_paused):
    world = World(status=failure)
    assert world.apply(8).status_error == str(failure)
    world.failures["status"] = None
    world.done.clear()
    write = world.apply(8)
    assert ("not tried again yet" in (write.status_error or "")) is is_paused
    assert ("status" in world.done) is not is_paused
    if is_paused:
        world.clock.advance(1.0)
        assert world.apply(8).status_error is None
        assert world.state.next_status_at < 0


def test_a_status_that_follows_a_scale_waits_for_no_pause():
    world = World()
    world.state.note_status_failure(0.0)
    assert world.apply(4).status_error is None
    assert "status" in world.done


@pytest.mark.parametrize("mode", ["DryRun", "Perhaps", ""])
def test_an_hpa_that_asks_for_a_dry_run_is_not_scaled(mode):
    world = World()
    meta = msgspec.structs.replace(
        world.state.hpa.metadata, annotations={MODE_ANNOTATION: mode} if mode else {}
    )
    world.state.replace_hpa(msgspec.structs.replace(world.state.hpa, metadata=meta), "")
    write = world.apply()
    assert write.is_dry_run is bool(mode)
    assert ("scale" in world.done) is not bool(mode)
    assert "status" in world.done, "its status shows what it would do"


def test_a_dry_run_sends_no_request():
    world = World(dry_run=True)
    write = world.apply()
    assert write.is_dry_run
    assert not {"scale", "status"} & set(world.done)


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_memory_that_is_not_stored_is_written_with_an_unchanged_status(is_stored):
    """`kubectl replace` drops the annotation of a native HPA."""
    world = World()
    observation = observe(world.state.hpa, 8, series(80))
    decision = decide_on(observation)
    world.state.replace_hpa(msgspec.structs.replace(world.state.hpa, status=decision.status), "")
    world.state.stored_reason = str(decision.reason.code)
    if is_stored:
        world.state.memory.set_stored(dumps(decision.memory).decode())
    write = world.apply(8)
    assert write.status_error is None
    assert write.write_reason == (None if is_stored else WriteReason.MEMORY), "the reason is counted"
    assert world.done == ([] if is_stored else ["status"])
    assert world.writer.has_nothing_to_write(write) is is_stored


def test_the_scale_is_dated_by_its_answer():
    """W2: with a slow or refusing API server the next step came a period after the decision, too soon."""
    world = World()
    observation = observe(world.state.hpa, 4, series(80))
    clock = VirtualClock(NOW)
    epoch = Epoch(clock)
    clock.advance(9.0)
    write = world.writer.prepare(
        world.state, Snapshot(target(4), observation, NOW, epoch), decide(observation, NOW)
    )
    VirtualClock().run(world.writer.apply(world.state, write))
    (event,) = write.decision.memory.scale_up
    assert event.at == write.scaled_at == NOW.timestamp() + 9.0
    assert dumps_record(replay(write.record())) == dumps_record(write.record())


STATUS = HorizontalPodAutoscalerStatus(
    observed_generation=1, desired_replicas=4, conditions=marked().conditions
)


@pytest.mark.parametrize(
    ("resource", "new", "want"),
    [
        pytest.param(
            OWN_HPAS,
            msgspec.structs.replace(STATUS, current_replicas=3),
            {
                "status": {
                    "currentReplicas": 3,
                    "reason": "FailedGetScale",
                    "targets": "cpu: <unknown>/50%",
                    "memory": "{}",
                }
            },
            id="only what changed",
        ),
        pytest.param(
            NATIVE_HPAS,
            msgspec.structs.replace(STATUS, current_replicas=3),
            {
                "metadata": {"annotations": {MEMORY_ANNOTATION: "{}", REASON_ANNOTATION: "FailedGetScale"}},
                "status": {"currentReplicas": 3},
            },
            id="a native HPA carries its memory and its reason in annotations",
        ),
        pytest.param(
            OWN_HPAS,
            HorizontalPodAutoscalerStatus(observed_generation=1, desired_replicas=4, conditions=()),
            {
                "status": {
                    "conditions": None,
                    "reason": "FailedGetScale",
                    "targets": "cpu: <unknown>/50%",
                    "memory": "{}",
                }
            },
            id="null removes an empty list",
        ),
    ],
)
def test_a_status_is_patched_by_what_changed(resource, new, want):
    state = hpa_state(resource=resource)
    state.replace_hpa(msgspec.structs.replace(state.hpa, status=STATUS), "")
    lost = Decision(now=0.0, status=new, reason=Reason(code=Code.SCALE_UNREADABLE))
    assert status_patch(state, new, lost, "{}") == want


@pytest.mark.parametrize(
    ("observed", "want"), [(4, 4), (0, 0), (None, None)], ids=["decided", "decided to be zero", "not known"]
)
def test_desired_replicas_are_written_once_they_are_decided(observed, want):
    """They were written as zero for a target that is missing."""
    state = hpa_state()
    new = HorizontalPodAutoscalerStatus(desired_replicas=observed or 0)
    state.replace_hpa(msgspec.structs.replace(state.hpa, status=new), "")
    patch = status_patch(state, new, Decision(now=0.0, status=new, observed_desired=observed), "{}")
    assert patch["status"].get("desiredReplicas") == want
