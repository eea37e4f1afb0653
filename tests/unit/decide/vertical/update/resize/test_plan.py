"""The patch and the annotations of one resize."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import pod
from trimtab.decide.vertical.admission.patches import IN_PLACE_ANNOTATION
from trimtab.decide.vertical.admission.pod_annotations import BOOST_PREFIX, ORIGINALS_ANNOTATION
from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.resize.plan import ResizePlan, plan_sizes
from trimtab.model.quantity import Quantity

SAME = ContainerResources({"memory": Quantity.parse("1Gi")}, {})
MORE = ContainerResources({"memory": Quantity.parse("2Gi")}, {})


def paths(plan: ResizePlan) -> list[str]:
    return [operation["path"].partition("/resources/")[2] for operation in plan.operations]


@pytest.mark.parametrize(
    ("size", "rules", "want"),
    [
        pytest.param(MORE, Rules.TRIMTAB, ["requests/memory"], id="a change is sent"),
        pytest.param(SAME, Rules.TRIMTAB, [], id="what does not change is not sent"),
        pytest.param(SAME, Rules.VPA_1_8, ["requests/memory"], id="upstream sends it all the same"),
        pytest.param(None, Rules.VPA_1_8, [], id="a container without a size is left alone"),
    ],
)
def test_what_a_resize_sends(size, rules, want):
    assert paths(plan_sizes(pod(), [size], rules=rules)) == want


@pytest.mark.parametrize(
    ("annotations", "before", "after"),
    [
        pytest.param({}, {ORIGINALS_ANNOTATION}, {IN_PLACE_ANNOTATION: "true"}, id="the first resize"),
        pytest.param(
            {IN_PLACE_ANNOTATION: "true", ORIGINALS_ANNOTATION: '{"app":{}}'},
            set(),
            {},
            id="a later resize writes nothing again",
        ),
    ],
)
def test_the_annotations_of_a_resize(annotations, before, after):
    plan = plan_sizes(pod(annotations=annotations), [MORE])
    assert set(plan.annotations_before) == before
    assert plan.annotations_after == after


def test_the_annotation_of_a_boost_that_ends_is_removed():
    plan = plan_sizes(pod(), [MORE], ["app"])
    assert plan.annotations_after[BOOST_PREFIX + "app"] is None


def test_a_resize_that_changes_the_qos_class_is_refused():
    guaranteed = pod(limits={"cpu": "100m", "memory": "1Gi"})
    plan = plan_sizes(guaranteed, [ContainerResources({"memory": Quantity.parse("512Mi")}, {})])
    assert plan.refusal == "its QoS class may not change from Guaranteed to Burstable by a resize"


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize("odd", ["left alone", "unchanged"])
def test_a_container_that_stays_does_not_hide_one_that_changes(odd, order):
    member = pod()
    (container,) = member.spec.containers
    both = tuple(msgspec.structs.replace(container, name=name) for name in ["app", "side"][::order])
    member = msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, containers=both))
    bigger = ContainerResources({"memory": Quantity.parse("4Gi")}, {})
    same = ContainerResources(dict(container.resources.requests), {}) if odd == "unchanged" else None
    plan = plan_sizes(member, [same, bigger][::order])
    index = [container.name for container in both].index("side")
    assert [operation["path"] for operation in plan.operations] == [
        f"/spec/containers/{index}/resources/requests/memory"
    ]
    assert list(plan.resources) == ["side"]
