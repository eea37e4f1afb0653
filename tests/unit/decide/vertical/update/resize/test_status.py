"""The status of a resize, from conditions and the annotation of the last request."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import NOW, pod, resize_condition, restarting
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, ResizeAnnotation
from trimtab.decide.vertical.update.resize.status import (
    IN_PROGRESS_TIMEOUT,
    ResizeStatus,
    differs_from_status,
    kubelet_message,
    reported_status,
    resize_status,
    restarts_containers,
)
from trimtab.model.core.pod import ResourceRequirements
from trimtab.model.json import wire

IN_PROGRESS = "PodResizeInProgress"
WANTED = wire.convert({"requests": {"cpu": "100m", "memory": "1Gi"}}, ResourceRequirements)
HAS_LESS = [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}}}]


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        pytest.param([], ResizeStatus.NONE, id="no condition"),
        pytest.param([{**resize_condition(), "status": "False"}], ResizeStatus.NONE, id="a false condition"),
        pytest.param([resize_condition()], ResizeStatus.DEFERRED, id="pending, deferred"),
        pytest.param([resize_condition(reason="Infeasible")], ResizeStatus.INFEASIBLE, id="infeasible"),
        pytest.param([resize_condition(reason="Odd")], ResizeStatus.UNKNOWN, id="pending, another reason"),
        pytest.param([resize_condition(IN_PROGRESS, "")], ResizeStatus.IN_PROGRESS, id="in progress"),
        pytest.param([resize_condition(IN_PROGRESS, "Error")], ResizeStatus.ERROR, id="an error"),
        pytest.param([resize_condition(IN_PROGRESS, "Odd")], ResizeStatus.UNKNOWN, id="another reason"),
        pytest.param(
            [resize_condition(IN_PROGRESS, ""), resize_condition()], ResizeStatus.DEFERRED, id="pending wins"
        ),
    ],
)
def test_the_conditions_are_read_as_upstream_reads_them(conditions, want):
    assert reported_status(pod(conditions=conditions)) is want


@pytest.mark.parametrize(
    ("age", "memory", "statuses", "want"),
    [
        pytest.param(timedelta(), "1Gi", HAS_LESS, ResizeStatus.IN_PROGRESS, id="requested, not observed"),
        pytest.param(timedelta(), "1Gi", [], ResizeStatus.NONE, id="the pod has the requested size"),
        pytest.param(timedelta(), "2Gi", HAS_LESS, ResizeStatus.NONE, id="another writer changed the spec"),
        pytest.param(IN_PROGRESS_TIMEOUT, "1Gi", HAS_LESS, ResizeStatus.NONE, id="the request timed out"),
    ],
)
def test_a_request_that_the_kubelet_has_not_observed_is_in_progress(age, memory, statuses, want):
    last = ResizeAnnotation(vpa="shop/base", at=NOW - age, resources={"app": WANTED})
    annotated = pod(
        memory=memory, statuses=statuses, annotations={RESIZE_ANNOTATION: wire.encode(last).decode()}
    )
    assert resize_status(annotated, NOW) is want


@pytest.mark.parametrize(
    ("refusals", "minutes", "keeps"),
    [
        pytest.param(1, 4, True, id="the first retry is after 5 minutes"),
        pytest.param(1, 5, False, id="5 minutes later"),
        pytest.param(2, 9, True, id="the second retry is after 10 minutes"),
        pytest.param(1_000_000, 59, True, id="never longer than an hour"),
        pytest.param(1_000_000, 60, False, id="an hour later"),
    ],
)
def test_retries_of_a_refused_memory_limit_back_off(refusals, minutes, keeps):
    last = ResizeAnnotation(refusals=refusals, refused_at=NOW)
    assert last.keeps_memory_limits(NOW + timedelta(minutes=minutes)) is keeps


@pytest.mark.parametrize(
    ("condition", "want"),
    [
        pytest.param({"lastTransitionTime": NOW - timedelta(seconds=1)}, True, id="set before the request"),
        pytest.param({"lastTransitionTime": NOW}, False, id="set within the second of the request"),
        pytest.param({"lastTransitionTime": NOW + timedelta(seconds=1)}, False, id="set after the request"),
        pytest.param({}, False, id="no time"),
        pytest.param({"observedGeneration": 4}, True, id="about an earlier generation"),
        pytest.param({"observedGeneration": 5}, False, id="about this generation"),
        pytest.param({"observedGeneration": 5, "lastTransitionTime": NOW - timedelta(days=1)}, False, id="generation first"),
        pytest.param({"status": "False", "observedGeneration": 4}, None, id="a condition that is false"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["PodResizePending", IN_PROGRESS])
def test_a_condition_about_an_earlier_request_does_not_hide_the_last_one(condition, want, kind):
    dated = {
        key: value.isoformat() if key == "lastTransitionTime" else value for key, value in condition.items()
    }
    member = annotated_pod([{**resize_condition(kind, "Error"), **dated}])
    status = resize_status(member, NOW + timedelta(minutes=1))
    reported = ResizeStatus.UNKNOWN if kind == "PodResizePending" else ResizeStatus.ERROR
    assert status is {True: ResizeStatus.IN_PROGRESS, False: reported, None: ResizeStatus.IN_PROGRESS}[want]


def annotated_pod(conditions):
    last = ResizeAnnotation(vpa="shop/base", at=NOW + timedelta(milliseconds=400), resources={"app": WANTED})
    made = pod(
        conditions=conditions, statuses=HAS_LESS, annotations={RESIZE_ANNOTATION: wire.encode(last).decode()}
    )
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, generation=5))


@pytest.mark.parametrize(
    ("minutes", "want"), [(9, ResizeStatus.IN_PROGRESS), (11, ResizeStatus.DEFERRED)], ids=["9 min", "11 min"]
)
def test_a_kubelet_without_generations_has_ten_minutes(minutes, want):
    condition = {**resize_condition(), "lastTransitionTime": (NOW - timedelta(hours=1)).isoformat()}
    assert resize_status(annotated_pod([condition]), NOW + timedelta(minutes=minutes)) is want


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        pytest.param([resize_condition()], "Deferred", id="reason alone"),
        pytest.param(
            [{**resize_condition(), "message": "no room"}], "Deferred: no room", id="reason and message"
        ),
        pytest.param([{**resize_condition(IN_PROGRESS, ""), "message": "busy"}], "busy", id="message alone"),
        pytest.param([{**resize_condition(), "status": "False"}], "", id="not true"),
        pytest.param([], "", id="no condition"),
        pytest.param(
            [
                {**resize_condition(), "status": "False"},
                {**resize_condition(IN_PROGRESS, ""), "message": "busy"},
            ],
            "busy",
            id="the condition that is true",
        ),
    ],
)
def test_the_kubelets_words_are_kept(conditions, want):
    assert kubelet_message(pod(conditions=conditions)) == want


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({"requests": {"cpu": "100m", "memory": "1Gi"}}, False, id="as the spec"),
        pytest.param({"requests": {"cpu": "100m", "memory": "2Gi"}}, True, id="another request"),
        pytest.param({"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}}, True, id="another limit"),
        pytest.param(None, False, id="not reported"),
    ],
)  # fmt: skip
def test_actual_resources_are_compared_with_the_spec(status, want):
    assert differs_from_status(pod(statuses=[{"name": "app", "resources": status}])) is want
    assert not differs_from_status(pod(statuses=[]))


def test_a_resize_restarts_if_any_policy_of_any_container_says_so():
    assert not restarts_containers(pod())
    assert restarts_containers(restarting(pod()))
    calm = restarting(pod())
    policy = msgspec.structs.replace(calm.spec.containers[0].resize_policy[0], restart_policy="NotRequired")
    container = msgspec.structs.replace(calm.spec.containers[0], resize_policy=(policy,))
    spec = msgspec.structs.replace(calm.spec, containers=(container,))
    assert not restarts_containers(msgspec.structs.replace(calm, spec=spec))
