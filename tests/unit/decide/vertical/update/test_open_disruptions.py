"""Disruptions that go on, end or were never carried out: each beside one that ends, before and after it."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import NOW, pod, resize_condition, restarting
from trimtab.decide.vertical.update.disruption_ledger import (
    Disruption,
    DisruptionKind,
    is_available,
    is_stuck,
    open_disruptions,
    waiting_since,
)
from trimtab.decide.vertical.update.loop_state import UpdaterState
from trimtab.decide.vertical.update.lost_responses import due_checks, mark_lost, next_check, resolve_lost
from trimtab.decide.vertical.update.resize.annotation import (
    RESIZE_ANNOTATION,
    ResizeAnnotation,
    has_resources,
)
from trimtab.model.core.pod import Container, ResourceRequirements
from trimtab.model.json import wire

HOUR = timedelta(hours=1)
HAS = wire.convert({"requests": {"cpu": "100m", "memory": "1Gi"}}, ResourceRequirements)
WANTS = wire.convert({"requests": {"cpu": "100m", "memory": "4Gi"}}, ResourceRequirements)


def resize(age=timedelta(), resources=HAS, **more):
    return Disruption(
        kind=DisruptionKind.RESIZE, requested_at=NOW - age, resources={"app": resources}, **more
    )


def eviction(age=timedelta(), **more):
    return Disruption(kind=DisruptionKind.EVICTION, requested_at=NOW - age, **more)


@pytest.mark.parametrize(
    ("odd", "is_open", "is_observed"),
    [
        pytest.param(resize(), True, True, id="the cache shows the resize"),
        pytest.param(resize(resources=WANTS), True, False, id="the cache does not show it yet"),
        pytest.param(resize(HOUR - timedelta(seconds=1), WANTS), True, False, id="nor after almost an hour"),
        pytest.param(resize(HOUR, WANTS), False, False, id="after an hour it had no effect"),
        pytest.param(
            resize(resources=WANTS, is_observed=True), False, False, id="another writer changed the pod"
        ),
        pytest.param(resize(HOUR, is_observed=True), True, True, id="shown, and not over"),
        pytest.param(eviction(), True, False, id="an eviction is never shown by a living pod"),
        pytest.param(eviction(HOUR), False, False, id="an eviction had no effect"),
    ],
)
@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize("beside", ["gone", "open", "over"])
def test_a_disruption_is_open_until_it_shows_or_times_out(odd, is_open, is_observed, order, beside):
    others = {"gone": eviction(), "open": resize(), "over": resize(HOUR, WANTS)}
    disruptions = dict([("uid-db-0", odd), ("uid-db-1", others[beside])][::order])
    pods = {"uid-db-0": pod("db-0"), "uid-db-1": pod("db-1")}
    if beside == "gone":
        del pods["uid-db-1"]
    found = open_disruptions(disruptions, pods, NOW)
    assert ("uid-db-0" in found) is is_open
    assert ("uid-db-1" in found) is (beside == "open")
    if is_open:
        assert found["uid-db-0"].is_observed is is_observed


def test_a_lost_response_no_longer_matters_once_the_resize_shows():
    lost = resize(response_lost_at=NOW)
    assert open_disruptions({"u": lost}, {"u": pod()}, NOW)["u"].response_lost_at is None
    waits = resize(resources=WANTS, response_lost_at=NOW)
    assert open_disruptions({"u": waits}, {"u": pod()}, NOW)["u"].response_lost_at == NOW


@pytest.mark.parametrize(
    ("condition_age", "request_age", "want"),
    [
        pytest.param(9, 3, 3, id="the later of both: the request"),
        pytest.param(3, 9, 3, id="the later of both: the condition"),
        pytest.param(None, 4, 4, id="the request alone"),
        pytest.param(5, None, 5, id="the condition alone"),
        pytest.param(None, None, None, id="neither"),
    ],
)
@pytest.mark.parametrize("known", ["disruption", "annotation"])
def test_a_resize_waits_since_the_later_of_request_and_condition(condition_age, request_age, want, known):
    def before(minutes):
        return NOW - timedelta(minutes=minutes)

    conditions = (
        [] if condition_age is None
        else [{**resize_condition(), "lastTransitionTime": before(condition_age).isoformat()}]
    )  # fmt: skip
    disruption, annotations = None, {}
    if request_age is not None and known == "disruption":
        disruption = resize(timedelta(minutes=request_age))
    elif request_age is not None:
        note = ResizeAnnotation(at=before(request_age))
        annotations = {RESIZE_ANNOTATION: wire.encode(note).decode()}
    member = pod(conditions=conditions, annotations=annotations)
    assert waiting_since(member, disruption) == (None if want is None else before(want))


@pytest.mark.parametrize(
    ("member", "disruption", "want"),
    [
        pytest.param(pod(), None, True, id="Ready"),
        pytest.param(pod(phase="Pending"), None, False, id="not Ready"),
        pytest.param(pod(), eviction(), False, id="evicted, not shown yet"),
        pytest.param(pod(), resize(is_observed=True), True, id="resized, shown and done"),
        pytest.param(pod(conditions=[resize_condition()]), None, True, id="a waiting resize that restarts nothing"),
        pytest.param(restarting(pod(conditions=[resize_condition()])), None, False, id="a waiting resize that would restart"),
        pytest.param(restarting(pod(conditions=[resize_condition(reason="Infeasible")])), None, True, id="an infeasible resize"),
        pytest.param(pod(conditions=[resize_condition("PodResizeInProgress", "")]), None, False, id="a resize in progress"),
    ],
)  # fmt: skip
def test_a_pod_is_available_while_nothing_is_done_to_it(member, disruption, want):
    assert is_available(member, disruption, NOW) is want
    deleted = msgspec.structs.replace(
        member, metadata=msgspec.structs.replace(member.metadata, deletion_timestamp=NOW)
    )
    assert not is_available(deleted, disruption, NOW)


def test_a_pod_is_stuck_when_it_is_not_ready_for_too_long():
    since = {
        "type": "Ready",
        "status": "False",
        "lastTransitionTime": (NOW - timedelta(minutes=4)).isoformat(),
    }
    young, never = (
        pod(conditions=[since], created=NOW - HOUR),
        pod(phase="Pending", created=NOW - timedelta(minutes=4)),
    )
    for member in (young, never):
        limits = [minutes for minutes in range(120) if not is_stuck(member, NOW + timedelta(minutes=minutes))]
        assert limits == list(range(len(limits)))
        assert 0 < len(limits) < 120


def containers(**requests):
    member = pod()
    made = tuple(
        Container(name=name, resources=wire.convert({"requests": {"memory": memory}}, ResourceRequirements))
        for name, memory in requests.items()
    )
    return msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, containers=made))


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param({"a": "1Gi", "b": "2Gi"}, True, id="both"),
        pytest.param({"a": "1Gi", "b": "4Gi"}, False, id="the last differs"),
        pytest.param({"a": "4Gi", "b": "2Gi"}, False, id="the first differs"),
        pytest.param({"b": "2Gi"}, True, id="one is not named"),
        pytest.param({}, True, id="none is named"),
        pytest.param({"gone": "9Gi"}, True, id="a container that the pod has not"),
    ],
)
def test_every_named_container_must_have_its_resources(given, want):
    named = {
        name: wire.convert({"requests": {"memory": memory}}, ResourceRequirements)
        for name, memory in given.items()
    }
    assert has_resources(containers(a="1Gi", b="2Gi"), named) is want


def lost(*ages, **more):
    disruptions = {
        f"uid-{place}": resize(response_lost_at=NOW - timedelta(seconds=age), resources=WANTS, **more)
        for place, age in enumerate(ages)
    }
    return UpdaterState(disruptions={**disruptions, "calm": resize()})


def test_the_pods_of_lost_responses_are_read_after_five_seconds_and_after_seventy():
    assert next_check(lost(1, 3)) == NOW + timedelta(seconds=2)
    assert next_check(lost(3, 1)) == NOW + timedelta(seconds=2)
    assert next_check(lost(1, is_checked=True)) == NOW + timedelta(seconds=69)
    assert next_check(lost()) is None
    assert due_checks(lost(4, 5, 6), NOW) == {"uid-1", "uid-2"}
    assert due_checks(lost(69, 70, is_checked=True), NOW) == {"uid-1"}


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize("odd", ["calm", "unknown"])
def test_a_pod_without_a_lost_response_does_not_hide_another(odd, order):
    read = dict([("uid-0", pod(uid="uid-0")), (odd, pod(uid=odd))][::order])
    after = resolve_lost(lost(70), read, NOW)
    assert set(after.disruptions) == {"calm"}


@pytest.mark.parametrize(
    ("live", "age", "want"),
    [
        pytest.param(None, 5, "carried out", id="the pod is gone"),
        pytest.param(pod(uid="other"), 5, "carried out", id="another pod has its name"),
        pytest.param(pod(uid="uid-0", memory="4Gi"), 5, "carried out", id="it has the requested size"),
        pytest.param(pod(uid="uid-0"), 69, "checked", id="nothing is done yet"),
        pytest.param(pod(uid="uid-0"), 70, "over", id="nothing can be done any more"),
    ],
)
def test_the_live_pod_shows_whether_a_request_was_carried_out(live, age, want):
    after = resolve_lost(lost(age), {"uid-0": live}, NOW).disruptions.get("uid-0")
    again = resolve_lost(lost(age, is_checked=True), {"uid-0": live}, NOW).disruptions.get("uid-0")
    assert after == again
    if want == "over":
        assert after is None
    else:
        assert after is not None
        assert (after.response_lost_at is None, after.is_checked) == (
            want == "carried out",
            want == "checked",
        )


def test_only_known_requests_are_marked_as_lost():
    state = UpdaterState(disruptions={"a": resize()})
    marked = mark_lost(state, {"a": NOW, "b": NOW})
    assert (set(marked.disruptions), marked.disruptions["a"].response_lost_at) == ({"a"}, NOW)
    assert mark_lost(state, {"b": NOW}) is state
