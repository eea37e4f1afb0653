"""What is kept of a pod is what a whole pod says, in a fraction of the memory."""

import gc
import tracemalloc
from typing import Any

import pytest

from trimtab.cluster.codec.objects import decode_page
from trimtab.decide.horizontal import snapshot_pod
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.operator.pods.decoder import CachedPod, PodDecoder, PodReducer
from trimtab.operator.pods.interning import InternTable
from trimtab.operator.pods.whole_pods import WholePodDecoder
from trimtab.operator.pods.wire import PodWire, WholePodWire

MOST_BYTES_PER_POD = 560
"""A whole pod takes 4,000; there were 430 of facts beside it."""


def pod_json(number: int = 0, **spec: Any) -> dict[str, Any]:
    """Return a pod; those of a workload of ten differ only in what is their own."""
    app = f"web-{number // 10}"
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": app,
        "uid": f"uid-{app}",
        "controller": True,
    }
    container = {"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    started = "2026-01-01T00:00:00Z"
    return {
        "metadata": {
            "name": f"{app}-{number:05}",
            "namespace": "shop",
            "uid": f"0000-{number:031}",
            "resourceVersion": f"{1000 + number}",
            "labels": {"app": app, "tier": "web"},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [container], **spec},
        "status": {
            "phase": "Running",
            "startTime": started,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": started}],
        },
    }


SIDECAR = {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "10m"}}}
SETUP = {"name": "setup", "resources": {"requests": {"cpu": "2"}}}
PODS = [
    pytest.param(pod_json(), id="an ordinary one"),
    pytest.param(
        {"metadata": {"name": "bare", "namespace": "shop"}}, id="one without labels, owners or status"
    ),
    pytest.param(pod_json(initContainers=[SETUP, SIDECAR]), id="one with a sidecar"),
    pytest.param(pod_json(initContainers=[SIDECAR | {"restartPolicy": ""}]), id="one whose sidecar is none"),
    pytest.param(
        pod_json(resources={"requests": {"cpu": "1"}}, overhead={"cpu": "50m"}),
        id="one with a request of its own",
    ),
    pytest.param(pod_json(containers=[]), id="one without containers"),
    pytest.param(
        {"metadata": {"name": "x", "labels": None, "ownerReferences": None}, "spec": {"containers": None}},
        id="one with nulls where the API server writes them",
    ),
    pytest.param(
        {"metadata": {"name": "x", "uid": None, "labels": {"a": "b"}}, "status": {"phase": None}},
        id="one with nulls where it does not",
    ),
    pytest.param(
        {"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="one that is going"
    ),
]


def kept(reader: PodDecoder, pod: dict[str, Any]) -> CachedPod:
    return reader(wire.decode(wire.encode(pod), PodWire))


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("pod", PODS)
def test_the_facts_are_those_of_the_whole_pod(pod, gate):
    whole = wire.decode(wire.encode(pod), Pod)
    reader = PodDecoder(pod_level_resources=gate)
    for _ in ("read", "remembered"):
        found = kept(reader, pod)
        assert wire.encode(found.facts) == wire.encode(snapshot_pod(whole, pod_level_resources=gate))
        assert (found.key, found.uid) == (f"{whole.metadata.namespace}/{whole.name}", whole.metadata.uid)
        assert found.metadata.resource_version == whole.metadata.resource_version


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("pod", PODS)
def test_the_facts_of_a_whole_pod_in_the_cache_are_the_same(pod, gate):
    decode, reduce = WholePodDecoder(), PodReducer(pod_level_resources=gate)
    small = kept(PodDecoder(pod_level_resources=gate), pod)
    for _ in ("read", "remembered"):
        assert reduce(decode(wire.decode(wire.encode(pod), WholePodWire))) == small


def test_the_node_of_a_pod_is_kept_only_if_decisions_read_it():
    raw = wire.encode(pod_json(nodeName="n1"))
    whole = WholePodDecoder()(wire.decode(raw, WholePodWire))
    for keeps, want in (({}, ""), ({"keeps_nodes": False}, ""), ({"keeps_nodes": True}, "n1")):
        assert PodReducer(pod_level_resources=True, **keeps)(whole).facts.node == want
        assert PodDecoder(pod_level_resources=True, **keeps)(wire.decode(raw, PodWire)).facts.node == want


def test_snapshots_of_whole_pods_share_what_is_equal():
    decode, reduce = WholePodDecoder(), PodReducer(pod_level_resources=True)
    first, second = (
        reduce(decode(wire.decode(wire.encode(pod_json(number)), WholePodWire))) for number in (1, 2)
    )
    assert first.facts.labels is second.facts.labels
    assert first.facts.owners is second.facts.owners
    assert first.facts.containers is second.facts.containers


def test_pods_of_a_workload_share_what_is_equal():
    reader = PodDecoder(pod_level_resources=True)
    one, two, other = (kept(reader, pod_json(number)) for number in (1, 2, 11))
    assert one.facts.labels is two.facts.labels
    assert one.facts.owners is two.facts.owners
    assert one.facts.containers is two.facts.containers is other.facts.containers
    assert one.facts.labels != other.facts.labels


def test_what_was_not_seen_for_long_is_read_again():
    read: list[int] = []

    def text_of(number: int) -> str:
        read.append(number)
        return str(number)

    shared: InternTable[int, str] = InternTable(text_of, most=2)
    for number in (1, 2, 3, 1, 2, 4, 5, 1):
        assert shared.of(number, number) == str(number)
    assert read == [1, 2, 3, 4, 5, 1]


def test_a_pod_takes_less_than_a_seventh_of_its_typed_object():
    pods = 2_000
    body = wire.encode({"metadata": {}, "items": [pod_json(number) for number in range(pods)]})
    reader = PodDecoder(pod_level_resources=True)
    gc.collect()
    tracemalloc.start()
    known = [reader(pod) for pod in decode_page("listing pods", body, PodWire).items]
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(known) == pods
    assert taken / pods < MOST_BYTES_PER_POD


ABSURD = {"requests": {"cpu": "100e1998", "memory": "128Mi"}, "limits": {"cpu": "1" + "0" * 2000}}
ABSURD_PODS = [
    pytest.param({"containers": [{"name": "main", "resources": ABSURD}]}, id="in a container"),
    pytest.param({"initContainers": [SIDECAR | {"resources": ABSURD}]}, id="in an init container"),
    pytest.param({"resources": ABSURD}, id="of the pod"),
    pytest.param({"overhead": {"cpu": "1e2000"}}, id="as overhead"),
]


@pytest.mark.parametrize("spec", ABSURD_PODS)
def test_a_pod_with_an_absurd_amount_is_kept(spec):
    """kube-apiserver stores `cpu: 1e2000`; the pod was left out of the caches, or stayed there after its deletion."""
    text = wire.encode(pod_json(**spec))
    decoded = PodDecoder(pod_level_resources=True)(wire.decode(text, PodWire))
    whole = WholePodDecoder()(wire.decode(text, WholePodWire))
    assert decoded == PodReducer(pod_level_resources=True)(whole)


def test_only_the_absurd_amount_is_replaced():
    whole = WholePodDecoder()(
        wire.decode(wire.encode(pod_json(containers=[{"name": "main", "resources": ABSURD}])), WholePodWire)
    )
    requests = whole.spec.containers[0].resources.requests
    assert {name: str(amount) for name, amount in requests.items()} == {
        "cpu": str(2**63 - 1),
        "memory": "128Mi",
    }
