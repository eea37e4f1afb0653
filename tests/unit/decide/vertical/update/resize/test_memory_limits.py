"""Memory limits that stay while the container uses more: which sizes keep what."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import NOW, pod
from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.decide.vertical.resources.pod_resources import Sizing
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, ResizeAnnotation
from trimtab.decide.vertical.update.resize.memory_limits import (
    actual_sizes,
    as_requested,
    is_limit_due,
    keep_limits,
    keep_memory,
    lowers_memory_limit,
)
from trimtab.model.core.pod import Container, ContainerStatus, ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity


def amounts(cpu=None, memory=None):
    given = {"cpu": cpu, "memory": memory}
    return {name: Quantity.parse(text) for name, text in given.items() if text}


def size(memory=None, limit=None):
    return ContainerResources(amounts("100m", memory), amounts("1", limit))


def resources(memory=None, limit=None):
    return ResourceRequirements(requests=amounts("100m", memory), limits=amounts("1", limit))


def running(**containers):
    """Make a pod; per container `(limit of the spec, actual limit)`, with half of each requested."""
    member = pod()
    half = {"1Gi": "512Mi", "2Gi": "1Gi", None: None}
    spec = msgspec.structs.replace(
        member.spec,
        containers=tuple(
            Container(name=name, resources=resources(half[wanted], wanted))
            for name, (wanted, _) in containers.items()
        ),
    )
    statuses = tuple(
        ContainerStatus(name=name, resources=resources(half[actual], actual))
        for name, (_, actual) in containers.items()
    )
    status = msgspec.structs.replace(member.status, container_statuses=statuses)
    return msgspec.structs.replace(member, spec=spec, status=status)


@pytest.mark.parametrize(
    ("wanted", "actual", "want"),
    [
        pytest.param("1Gi", "2Gi", True, id="lower"),
        pytest.param("2Gi", "2Gi", False, id="the same"),
        pytest.param("2Gi", "1Gi", False, id="higher"),
        pytest.param(None, "1Gi", False, id="no limit wanted"),
        pytest.param("1Gi", None, False, id="no limit yet"),
        pytest.param(None, None, False, id="no limit at all"),
    ],
)
@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_a_limit_is_lowered_if_any_container_has_more(wanted, actual, want, order):
    odd, calm = ("odd", (wanted, actual)), ("calm", ("1Gi", "1Gi"))
    member = running(**dict([calm, odd][::order]))
    assert lowers_memory_limit(member) is want
    assert not lowers_memory_limit(as_requested(member))


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_only_a_limit_that_would_be_lowered_keeps_its_actual_value(order):
    member = running(**dict([("calm", ("1Gi", "1Gi")), ("odd", ("2Gi", "2Gi"))][::order]))
    sizes = tuple([size("256Mi", "2Gi"), size("256Mi", "1Gi")][::order])
    kept = keep_limits(member, sizes)[::order]
    assert kept == (size("256Mi", "2Gi"), size("256Mi", "2Gi"))
    kept = keep_memory(member, sizes)[::order]
    assert kept == (size("256Mi", "2Gi"), size("1Gi", "2Gi"))


def test_sizes_that_lower_nothing_are_kept_as_they_are():
    member = running(app=("1Gi", "1Gi"))
    for sizes in ((size("256Mi", "1Gi"),), (size("256Mi"),)):
        assert keep_limits(member, sizes) == keep_memory(member, sizes) == sizes


def test_actual_sizes_are_those_of_the_statuses():
    member = running(app=("1Gi", "2Gi"))
    assert actual_sizes(member) == (size("1Gi", "2Gi"),)
    assert actual_sizes(as_requested(member)) == (size("512Mi", "1Gi"),)


@pytest.mark.parametrize(
    ("refused", "minutes", "limit", "want"),
    [
        pytest.param(True, 5, "1Gi", True, id="the wait is over"),
        pytest.param(True, 4, "1Gi", False, id="the wait is not over"),
        pytest.param(True, 5, "2Gi", False, id="it would not be lowered any more"),
        pytest.param(False, 5, "1Gi", False, id="it was never refused"),
    ],
)
def test_a_refused_limit_is_due_after_its_wait(refused, minutes, limit, want):
    member = running(calm=("1Gi", "1Gi"), app=("2Gi", "2Gi"))
    last = ResizeAnnotation(refusals=1, refused_at=NOW if refused else None)
    metadata = msgspec.structs.replace(
        member.metadata, annotations={RESIZE_ANNOTATION: wire.encode(last).decode()}
    )
    made = Sizing((size("256Mi", "1Gi"), size("256Mi", limit)), {})
    member = msgspec.structs.replace(member, metadata=metadata)
    assert is_limit_due(member, made, NOW + timedelta(minutes=minutes)) is want
