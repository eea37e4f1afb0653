"""How often the kubelet refused to lower a memory limit: what counts on, and what begins anew."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import NOW, Recorder, pod, recommended, run, vpa, world
from trimtab.decide.vertical.update.actions import Resize
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, ResizeAnnotation
from trimtab.model.core.pod import Container
from trimtab.model.json import wire
from trimtab.model.vpa.types import RecommendedPodResources


def container(name, limit):
    limits = {"memory": limit} if limit else {}
    data = {"name": name, "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": limits}}
    return wire.convert(data, Container)


def member(containers, last):
    made = pod("db-0", annotations={RESIZE_ANNOTATION: wire.encode(last).decode()})
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, containers=containers))


def resized(containers, last):
    """Raise the memory of every container in place, and return what is noted at the pod."""
    owner = vpa("base", recommended("4Gi"), mode="InPlace")
    entries = tuple(recommended("2Gi", container=each.name) for each in containers)
    recommendation = RecommendedPodResources(container_recommendations=entries)
    status = msgspec.structs.replace(owner.status, recommendation=recommendation)
    owner = msgspec.structs.replace(owner, status=status)
    api = Recorder()
    others = [pod(f"db-{place}", memory="2Gi") for place in (1, 2)]
    run(
        msgspec.structs.replace(world([owner], [member(containers, last), *others]), serves_resize=True),
        api=api,
    )
    action = next(action for action in api.actions if action.pod.name == "db-0")
    assert isinstance(action, Resize)
    text = action.plan.annotations_before[RESIZE_ANNOTATION]
    assert text is not None
    return wire.decode(text, ResizeAnnotation)


REFUSED = ResizeAnnotation(refusals=3, refused_at=NOW - timedelta(hours=2))


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    ("limits", "last", "want"),
    [
        pytest.param(("2Gi", None), REFUSED, 3, id="one of two limits changes: a retry"),
        pytest.param(("2Gi", "2Gi"), REFUSED, 3, id="both limits change: a retry"),
        pytest.param((None, None), REFUSED, 0, id="no limit changes: the count begins anew"),
        pytest.param(("2Gi", None), ResizeAnnotation(refusals=3), 0, id="nothing was refused"),
    ],
)
def test_refusals_count_on_while_limits_are_tried_again(limits, last, want, order):
    containers = tuple(
        container(name, limit) for name, limit in list(zip(("app", "side"), limits, strict=True))[::order]
    )
    noted = resized(containers, last)
    assert noted.refusals == want
    assert noted.at == NOW


@pytest.mark.parametrize(
    ("refusals", "minutes"), [(0, 5), (1, 5), (2, 10), (3, 20), (4, 40), (5, 60), (9, 60), (1_000_000, 60)]
)
def test_a_refused_limit_waits_twice_as_long_each_time_up_to_an_hour(refusals, minutes):
    last = ResizeAnnotation(refusals=refusals, refused_at=NOW)
    wait = timedelta(minutes=minutes)
    assert last.keeps_memory_limits(NOW + wait - timedelta(seconds=1))
    assert not last.keeps_memory_limits(NOW + wait)
    assert not ResizeAnnotation(refusals=refusals).keeps_memory_limits(NOW)
