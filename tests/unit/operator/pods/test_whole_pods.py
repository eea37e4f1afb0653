"""Pods are kept as far as vertical decisions read them, equal to pods that were read whole, and share what is the same."""

from importlib import import_module
from pkgutil import walk_packages

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import raw_pod
from trimtab.decide import vertical as decide
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.operator.pods.whole_pods import WholePodDecoder
from trimtab.operator.pods.wire import WholePodWire

RUNNING = {"name": "app", "ready": True, "restartCount": 2, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
           "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
           "resources": {"requests": {"cpu": "100m"}}, "allocatedResources": {"cpu": "100m"}}  # fmt: skip
RESIZING = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
DAEMON = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        }
    }
}


def kept(raw, sharer=None) -> Pod:
    return (sharer or WholePodDecoder())(wire.decode(msgspec.json.encode(raw), WholePodWire))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(raw_pod(), id="a plain pod"),
        pytest.param(
            raw_pod(statuses=[RUNNING], conditions=[RESIZING]), id="one that was killed and resizes"
        ),
        pytest.param(raw_pod(statuses=[{"name": "app"}]), id="one whose container has not started"),
        pytest.param(
            raw_pod(affinity=DAEMON, annotations={"vpaObservedContainers": "app"}),
            id="a DaemonSet's, not bound yet",
        ),
        pytest.param(
            raw_pod(owner=None, cpu=None, memory=None), id="one that nobody owns and asks for nothing"
        ),
        pytest.param(raw_pod(node="n1", phase="Failed", limits={"cpu": "1"}), id="one that failed"),
        pytest.param({"metadata": {"name": "x", "labels": None}, "spec": {"containers": None}}, id="holes"),
    ],
)
def test_a_kept_pod_equals_one_that_was_read_whole(raw):
    assert kept(raw) == wire.decode(msgspec.json.encode(raw), Pod)


def test_pods_of_one_workload_share_their_labels_owners_and_containers():
    sharer = WholePodDecoder()
    one, other = (kept(raw_pod(name), sharer) for name in ("db-0", "db-1"))
    assert one.metadata.labels is other.metadata.labels
    assert one.metadata.owner_references is other.metadata.owner_references
    assert one.spec.containers is other.spec.containers
    assert kept(raw_pod("db-2", cpu="2"), sharer).spec.containers is not one.spec.containers


def test_conditions_that_no_decision_asks_about_are_not_kept():
    scheduled = {"type": "PodScheduled", "status": "True"}
    assert [one.type for one in kept(raw_pod(conditions=[scheduled, RESIZING])).status.conditions] == [
        "Ready",
        "PodResizePending",
    ]


def test_of_annotations_only_those_that_decisions_read_are_kept():
    read = {"trimtab.dev/resize": "{}", "vpaCpuStartupBoost/app": "{}", "roles.trimtab.dev/lease": "db"}
    foreign = {"cni/addresses": "10.0.0.7", "vpaUpdates": "by us, never read", "trimtab.dev/held-back": "x"}
    assert kept(raw_pod(annotations=foreign | read)).metadata.annotations == read


def test_annotations_that_are_spelt_with_escapes_are_found():
    text = msgspec.json.encode(raw_pod(annotations={"vpaObservedContainers": "app"}))
    pod = WholePodDecoder()(wire.decode(text.replace(b"vpaObs", b"\\u0076paObs"), WholePodWire))
    assert pod.metadata.annotations == {"vpaObservedContainers": "app"}


def test_every_annotation_of_a_vertical_decision_is_kept_or_only_written():
    """A new annotation that decisions read must be kept by the decoder."""
    written_only = {"vpaUpdates", "trimtab.dev/held-back"}
    names = {
        value
        for module in walk(decide)
        for name, value in vars(import_module(module)).items()
        if name.endswith("_ANNOTATION") and isinstance(value, str) and " " not in value
    }
    assert len(names) > len(written_only)
    of_vpas = {"trimtab.dev/memory-windows", "trimtab.dev/estimate", "autoscaling.trimtab.dev/vpa-scope"}
    found = kept(raw_pod(annotations=dict.fromkeys(names, "x"))).metadata.annotations
    assert set(found) == names - written_only - of_vpas


def walk(package) -> list[str]:
    return [module.name for module in walk_packages(package.__path__, f"{package.__name__}.")]
