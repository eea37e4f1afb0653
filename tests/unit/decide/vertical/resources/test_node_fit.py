"""Which nodes could hold a pod: what the scheduler looks at first."""

import pytest

from trimtab.decide.vertical.resources.node_fit import no_node_fits, node_rooms
from trimtab.model.core.objects import Node
from trimtab.model.core.scheduling import PlacedSpec
from trimtab.model.json import wire


def node(name="n1", cpu="4", memory="8Gi", labels=None, **spec):
    data = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory}},
    }
    return wire.convert(data, Node)


def spec(cpu="1", memory="1Gi", **more):
    containers = [{"name": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]
    return wire.convert({"containers": containers, **more}, PlacedSpec)


def affinity(**requirement):
    terms = [{"matchExpressions": [requirement]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
SIDECAR = [{"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "3500m"}}}]


@pytest.mark.parametrize(
    ("pod", "nodes", "fits"),
    [
        pytest.param(spec(), [node()], True, id="room enough"),
        pytest.param(spec("5"), [node()], False, id="too little CPU"),
        pytest.param(spec("5"), [node(), node("n2", cpu="8")], True, id="one of them is enough"),
        pytest.param(
            spec("5", "9Gi"), [node("n1", "8"), node("n2", "4", "16Gi")], False, id="on one node, not two"
        ),
        pytest.param(spec(initContainers=SIDECAR), [node()], False, id="sidecars run beside it"),
        pytest.param(spec(overhead={"cpu": "3500m"}), [node()], False, id="overhead counts"),
        pytest.param(
            spec(resources={"requests": {"cpu": "6"}}), [node()], False, id="pod-level requests count"
        ),
        pytest.param(spec(), [node(unschedulable=True)], False, id="cordoned"),
        pytest.param(spec(nodeSelector={"disk": "ssd"}), [node()], False, id="a selector that no node meets"),
        pytest.param(
            spec(nodeSelector={"disk": "ssd"}),
            [node(labels={"disk": "ssd"})],
            True,
            id="a selector that is met",
        ),
        pytest.param(spec(), [node(taints=[TAINT])], False, id="a taint"),
        pytest.param(
            spec(tolerations=[{"key": "gpu", "operator": "Exists"}]),
            [node(taints=[TAINT])],
            True,
            id="tolerated",
        ),
        pytest.param(
            spec(tolerations=[{"operator": "Exists"}]),
            [node(taints=[TAINT])],
            True,
            id="everything tolerated",
        ),
        pytest.param(
            spec(tolerations=[{"key": "gpu", "value": "no"}]),
            [node(taints=[TAINT])],
            False,
            id="another value tolerated",
        ),
        pytest.param(
            spec(),
            [node(taints=[{**TAINT, "effect": "PreferNoSchedule"}])],
            True,
            id="a preference keeps no pod out",
        ),
        pytest.param(
            spec(**affinity(key="size", operator="Gt", values=["3"])),
            [node(labels={"size": "4"})],
            True,
            id="greater than",
        ),
        pytest.param(
            spec(**affinity(key="size", operator="Gt", values=["4"])),
            [node(labels={"size": "4"})],
            False,
            id="not greater than",
        ),
        pytest.param(
            spec(**affinity(key="size", operator="DoesNotExist")), [node()], True, id="a label that is absent"
        ),
        pytest.param(
            spec(**affinity(key="disk", operator="NotIn", values=["hdd"])),
            [node(labels={"disk": "hdd"})],
            False,
            id="not in",
        ),
        pytest.param(spec("900"), [], True, id="without nodes nothing is known"),
    ],
)
def test_some_node_could_hold_it(pod, nodes, fits):
    assert (no_node_fits(pod, node_rooms(nodes)) is None) is fits


def test_the_largest_size_that_would_fit_is_named():
    found = no_node_fits(spec("5", "2Gi"), node_rooms([node("small", "1"), node("big", "4", "8Gi")]))
    assert found is not None
    assert found.message == (
        "no node has room for cpu 5, memory 2Gi; the largest size that would fit is cpu 4, memory 2Gi, on node big"
    )


def test_what_is_taken_already_is_not_free():
    taken = {"n1": {"cpu": 3_500, "memory": 0}}
    assert no_node_fits(spec("1"), node_rooms([node()], taken)) is not None
    assert no_node_fits(spec("500m"), node_rooms([node()], taken)) is None
