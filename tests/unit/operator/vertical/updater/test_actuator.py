"""What the actuator logs and returns for each end of an eviction or a resize."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.decide.vertical.policy_builders import pod, vpa
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict, Resize
from trimtab.decide.vertical.update.resize.plan import ResizePlan
from trimtab.model.status import Status, StatusCause, StatusDetails
from trimtab.operator.vertical.updater.actuator import (
    ActionRateLimiter,
    UpdateActuator,
    read_live,
    write_refusal_notes,
)
from trimtab.operator.vertical.updater.replacement import REFUSED, Obstacle

PLAN = ResizePlan(operations=({"op": "replace", "path": "/spec", "value": 1},))
EVICT = Evict(pod(), vpa("base"), "its size")
RESIZE = Resize(pod(), vpa("base"), PLAN, "its size")


def answer(kind: type[errors.ApiError], code: int, cause: str = "") -> errors.ApiError:
    causes = (StatusCause(reason=cause),) if cause else ()
    status = Status(message="no", code=code, details=StatusDetails(causes=causes))
    return kind("acting", status)


class Api:
    """A client whose evictions and resizes end as they are told."""

    def __init__(self, end: Exception | None = None, *, is_dry_run: bool = False) -> None:
        self.clock = VirtualClock()
        self.is_dry_run = is_dry_run
        self.sent: list[str] = []
        self._end = end

    async def evict(self, *_names: Any, **_options: Any) -> None:
        self._answer("evict")

    async def patch(self, *_names: Any, **_options: Any) -> Any:
        self._answer("resize")
        return pod()

    async def get(self, *_names: Any) -> Any:
        return pod("db-0", memory="9Gi")  # changed since the decision

    def _answer(self, sent: str) -> None:
        self.sent.append(sent)
        if self._end is not None:
            raise self._end


class Check:
    """Finds the same obstacle to every replacement."""

    def __init__(self, obstacle: Obstacle | None) -> None:
        self._obstacle = obstacle

    async def obstacle(self, _pod: Any, _vpa: Any) -> Obstacle | None:
        return self._obstacle


def actuator(api: Any, problem: str | None = None, rate: float = 0.0, check: Any = None) -> UpdateActuator:
    async def webhook_check() -> str | None:
        return problem

    evictions, resizes = (ActionRateLimiter(api.clock, rate, 1) for _ in range(2))
    return UpdateActuator(api, evictions, resizes, webhook_check, until=60.0, replacement=check)


def outcomes(caplog: Any) -> list[tuple[str, str]]:
    return [
        (record.getMessage(), record.facts["outcome"])
        for record in caplog.records
        if hasattr(record, "facts")
    ]


def perform(actuator: UpdateActuator, *actions: Action) -> list[ActionResult]:
    async def main() -> list[ActionResult]:
        return [await actuator.perform(action) for action in actions]

    clock = actuator.client.clock
    assert isinstance(clock, VirtualClock)
    return clock.run(main())


@pytest.mark.parametrize(
    ("action", "end", "outcome", "logged"),
    [
        pytest.param(EVICT, None, ActionResult.DONE, "done", id="evicted"),
        pytest.param(RESIZE, None, ActionResult.DONE, "requested", id="the kubelet reports a resize later"),
        pytest.param(
            EVICT, answer(errors.TooManyRequests, 429), ActionResult.REFUSED, "refused", id="a budget"
        ),
        pytest.param(EVICT, answer(errors.NotFound, 404), ActionResult.FAILED, "failed", id="deleted"),
        pytest.param(EVICT, errors.TransportError("lost"), ActionResult.UNKNOWN, "unknown", id="lost"),
        pytest.param(EVICT, answer(errors.Conflict, 409), ActionResult.FAILED, "failed", id="changed"),
        pytest.param(
            RESIZE, answer(errors.Invalid, 422), ActionResult.INVALID, "invalid", id="against a rule"
        ),
        pytest.param(
            RESIZE,
            answer(errors.Invalid, 422, "NodeCapacity"),
            ActionResult.INFEASIBLE,
            "infeasible",
            id="the node is too small",
        ),
        pytest.param(
            RESIZE,
            answer(errors.Forbidden, 403, "NodeCapacity"),
            ActionResult.INFEASIBLE,
            "infeasible",
            id="the node is too small, as other servers say it",
        ),
        pytest.param(RESIZE, answer(errors.Forbidden, 403), ActionResult.FAILED, "failed", id="a quota"),
        pytest.param(RESIZE, answer(errors.NotFound, 404), ActionResult.FAILED, "failed", id="no resizes"),
        pytest.param(RESIZE, answer(errors.Conflict, 409), ActionResult.FAILED, "failed", id="another spec"),
        pytest.param(
            RESIZE, errors.TransportError("lost"), ActionResult.UNKNOWN, "unknown", id="lost resize"
        ),
    ],
)
def test_each_end_is_returned_logged_and_counted(caplog, action, end, outcome, logged):
    caplog.set_level("INFO")
    acting = actuator(Api(end))
    assert perform(acting, action) == [outcome]
    assert outcomes(caplog) == [("evict" if action is EVICT else "resize", logged)]
    assert [performed.outcome for performed in acting.done] == [outcome]
    assert set(acting.lost) == ({"uid-db-0"} if outcome is ActionResult.UNKNOWN else set())


@pytest.mark.parametrize("action", [EVICT, RESIZE])
def test_a_lost_lease_ends_the_loop_and_logs_no_action(caplog, action):
    caplog.set_level("INFO")
    acting = actuator(Api(errors.Fenced("the lease is lost")))
    with pytest.raises(errors.Fenced):
        perform(acting, action)
    assert (outcomes(caplog), acting.done) == ([], [])


@pytest.mark.parametrize(
    ("end", "sent"),
    [
        pytest.param(errors.TransportError("lost"), ["resize"], id="it may be resized"),
        pytest.param(answer(errors.Forbidden, 403), ["resize"], id="a quota stops the replacement too"),
        pytest.param(answer(errors.Invalid, 422), ["resize", "evict"], id="the resize is refused"),
    ],
)
def test_a_pod_is_evicted_after_its_resize_only_if_that_did_not_happen(end, sent):
    api = Api(end)
    perform(actuator(api), RESIZE, EVICT)
    assert api.sent == sent


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({"problem": "no webhook"}, ActionResult.FAILED),
        ({"check": Check(Obstacle(REFUSED, "a quota"))}, ActionResult.UNREPLACEABLE),
        ({"check": Check(None)}, ActionResult.DONE),
    ],
)
def test_a_pod_that_would_not_come_back_is_not_evicted(options, outcome):
    api = Api()
    acting = actuator(api, **options)
    assert perform(acting, EVICT) == [outcome]
    assert bool(api.sent) is (outcome is ActionResult.DONE)
    assert acting.webhook_problem == options.get("problem")
    refusals = {"shop/db-0": "a quota" if acting.obstacles else ""}
    assert acting.replacements == (refusals if "check" in options else {})


@pytest.mark.parametrize("action", [EVICT, RESIZE])
def test_actions_that_would_wait_beyond_the_loop_are_left_to_the_next(action):
    api = Api()
    assert perform(actuator(api, rate=1 / 40), action, action, action) == [
        ActionResult.DONE,
        ActionResult.DONE,
        ActionResult.RATE_LIMITED,
    ]
    assert (len(api.sent), api.clock.monotonic()) == (2, 40.0)


def test_a_dry_run_counts_what_it_would_do_and_sends_nothing(caplog):
    caplog.set_level("INFO")
    api = Api(is_dry_run=True)
    acting = actuator(api)
    assert perform(acting, EVICT, RESIZE) == [ActionResult.DRY_RUN] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "dry run: would evict",
        "dry run: would resize",
    ]
    assert (api.sent, len(acting.done)) == ([], 2)
    refused = actuator(api, check=Check(Obstacle(REFUSED, "a quota")))
    assert perform(refused, EVICT) == [ActionResult.UNREPLACEABLE]
    assert refused.done == []


class SharedPod(Api):
    """A client of a pod that others write, too: before some of our writes, and right after our resize."""

    def __init__(self, before: str = "", times: int = 0, memory: str = "") -> None:
        super().__init__()
        self.now = versioned(pod(), 1)
        self._before, self._times, self._memory = before, times, memory

    async def patch(self, *names: Any, **options: Any) -> Any:
        sent = options.get("subresource") or next(iter(names[3]["metadata"]["annotations"]))
        if sent == self._before and self._times:
            self._times -= 1
            self._write(pod(memory=self._memory) if self._memory else self.now)
        if options["preconditions"].resource_version != self.now.metadata.resource_version:
            raise answer(errors.Conflict, 409)
        self.sent.append(sent)
        self._write(pod(memory="7Gi") if sent == "resize" else self.now)
        written = self.now
        if sent == "resize":
            self._write(self.now)  # the kubelet reports it
        return written

    async def get(self, *_names: Any) -> Any:
        return self.now

    def _write(self, content: Any) -> None:
        self.now = versioned(content, int(self.now.metadata.resource_version) + 1)


def versioned(content: Any, version: int) -> Any:
    return replace(content, metadata=replace(content.metadata, resource_version=str(version)))


def resized(api: SharedPod) -> ActionResult:
    """Resize a pod with a note before and one after, and return what became of it."""
    plan = ResizePlan(PLAN.operations, annotations_before={"first": "1"}, annotations_after={"last": None})
    (result,) = perform(actuator(api), Resize(versioned(pod(), 1), vpa("base"), plan, "its size"))
    return result


WRITES = ["first", "resize", "last"]


@pytest.mark.parametrize("times", [0, 1, 3])
@pytest.mark.parametrize("before", WRITES)
def test_writes_of_the_kubelet_stop_none_of_ours(before, times):
    """The note after a resize was tried five times, the two writes before it only twice."""
    api = SharedPod(before, times)
    assert (resized(api), api.sent) == (ActionResult.DONE, WRITES)


@pytest.mark.parametrize(
    ("before", "result", "sent"),
    [
        ("first", ActionResult.FAILED, []),
        ("resize", ActionResult.FAILED, ["first"]),
        ("last", ActionResult.DONE, ["first", "resize"]),
    ],
)
def test_a_spec_that_others_changed_stops_our_writes(before, result, sent):
    """The note after a resize went to a pod that was resized again meanwhile."""
    api = SharedPod(before, 1, memory="9Gi")
    assert (resized(api), api.sent) == (result, sent)


@pytest.mark.parametrize("before", WRITES)
def test_a_pod_that_is_written_all_the_time_is_left_to_the_next_loop(before):
    api = SharedPod(before, 1000)
    assert resized(api) is (ActionResult.DONE if before == "last" else ActionResult.FAILED)
    assert api.sent == WRITES[: WRITES.index(before)]


@pytest.mark.parametrize(
    ("rate", "burst", "times"),
    [
        pytest.param(0.0, 1, [0, 0, 0, 0, 0], id="no limit"),
        pytest.param(1.0, 1, [0, 1, 2, 3, 4], id="one per second"),
        pytest.param(1.0, 3, [0, 0, 0, 1, 2], id="a burst of three"),
        pytest.param(1.0, 0, [0, 1, 2, 3, 4], id="a burst of none is one"),
        pytest.param(0.5, 2, [0, 0, 2, 4, 6], id="one per two seconds"),
    ],
)
def test_actions_wait_for_their_tokens(rate, burst, times):
    clock = VirtualClock()
    limiter = ActionRateLimiter(clock, rate, burst)

    async def main() -> list[float]:
        taken = []
        for _ in range(5):
            assert await limiter.take(1000.0)
            taken.append(clock.monotonic())
        return taken

    assert clock.run(main()) == times


def test_an_idle_limiter_saves_no_more_than_its_burst_and_a_refused_action_takes_none():
    clock = VirtualClock()
    limiter = ActionRateLimiter(clock, 1.0, 2)

    async def main() -> None:
        await clock.sleep(100)
        assert [await limiter.take(100.0) for _ in range(3)] == [True, True, False]
        assert not await limiter.take(100.9)
        assert await limiter.take(101.0)
        assert clock.monotonic() == 101.0

    clock.run(main())


class Notes:
    """A client whose writes to pods end as they are told, by name."""

    def __init__(self, **ends: Exception) -> None:
        self.ends = ends
        self.written: list[str] = []

    async def patch(self, _resource: Any, name: str, *_rest: Any, **_options: Any) -> None:
        if name in self.ends:
            raise self.ends[name]
        self.written.append(name)

    get = patch


def noted(api: Notes) -> None:
    client: Any = api
    VirtualClock().run(
        write_refusal_notes(client, [(pod("a"), "too large"), (pod("b"), None), (pod("c"), "no")])
    )


@pytest.mark.parametrize(
    ("end", "is_logged"),
    [
        pytest.param(answer(errors.NotFound, 404), False, id="deleted"),
        pytest.param(answer(errors.Conflict, 409), False, id="replaced"),
        pytest.param(answer(errors.Forbidden, 403), True, id="a missing right"),
        pytest.param(errors.TransportError("lost"), True, id="no answer"),
    ],
)
def test_a_note_that_cannot_be_written_keeps_no_other_back(end, is_logged, caplog):
    for first in ("a", "b"):
        caplog.clear()
        api = Notes(**{first: end})
        noted(api)
        assert api.written == [name for name in "abc" if name != first]
        assert ("is not noted" in caplog.text) is is_logged


def test_a_lost_lease_ends_the_notes():
    api = Notes(b=errors.Fenced("no lease"))
    with pytest.raises(errors.Fenced):
        noted(api)
    assert api.written == ["a"]


def test_a_pod_that_is_gone_is_no_error_and_one_that_cannot_be_read_is():
    client: Any = Notes(a=answer(errors.NotFound, 404), b=answer(errors.Forbidden, 403))
    assert VirtualClock().run(read_live(client, pod("a"))) is None
    with pytest.raises(errors.Forbidden):
        VirtualClock().run(read_live(client, pod("b")))


@pytest.mark.parametrize(
    "now", [pytest.param(pod(memory="9Gi"), id="another size"), pytest.param(pod(uid="u2"), id="replaced")]
)
def test_a_pod_that_is_another_one_now_is_a_conflict(now):
    class Changed(Api):
        async def get(self, *_names: Any) -> Any:
            return now

    api = Changed()
    with pytest.raises(errors.Conflict, match="the pod changed since the decision") as caught:
        api.clock.run(actuator(api)._unless_resized(pod()))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


def test_a_pod_whose_status_alone_changed_is_still_the_same():
    class Reported(Api):
        async def get(self, *_names: Any) -> Any:
            return pod(phase="Failed", labels={"role": "leader"})

    api = Reported()
    assert api.clock.run(actuator(api)._unless_resized(pod())).status.phase == "Failed"
