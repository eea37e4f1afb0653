"""The status of a resize, from conditions and the annotation of the last request."""

from datetime import timedelta

import pytest

from tests.unit.decide.vertical.policy_builders import NOW, pod, resize_condition
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, ResizeAnnotation
from trimtab.decide.vertical.update.resize.status import (
    IN_PROGRESS_TIMEOUT,
    ResizeStatus,
    reported_status,
    resize_status,
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
