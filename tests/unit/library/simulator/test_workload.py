"""What pods, nodes and controllers of the simulation do without any autoscaler."""

import pytest

from trimtab.library.simulator.workload import Behaviour, SimulatedNode, Workload
from trimtab.model.core.pod import PodSpec
from trimtab.model.json import wire

MI = 2**20
START = 1_000_000.0


def workload(kind="Deployment", replicas=2, nodes=(), **behaviour):
    resources = {"requests": {"cpu": "1", "memory": "100Mi"}, "limits": {"memory": "200Mi"}}
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "app", "resources": resources}]},
    }
    return Workload(
        "db",
        template,
        kind=kind,
        replicas=replicas,
        nodes=tuple(nodes),
        behaviour=Behaviour(**behaviour),
        now=START,
    )


def node(name="a", cpu=4000):
    return SimulatedNode(name, cpu, 1000 * MI)


def spec(cpu):
    requests = {"cpu": cpu, "memory": "100Mi"}
    resources = {"requests": requests, "limits": {"memory": "200Mi"}}
    return wire.convert({"nodeName": "a", "containers": [{"name": "app", "resources": resources}]}, PodSpec)


def names(made):
    return sorted(pod.name for pod in made.pods)


@pytest.mark.parametrize(
    ("memory", "is_killed"),
    [
        pytest.param(200 * MI, False, id="at its limit a container lives"),
        pytest.param(200 * MI + 1, True, id="above its limit it is killed"),
    ],
)
def test_the_memory_limit_kills(memory, is_killed):
    made = workload()
    made.check_memory({"db-1": {"app": (100, memory)}}, START)
    (status,) = made.pods[0].api.status.container_statuses
    assert (status.restart_count, made.pods[0].is_ready) == ((1, False) if is_killed else (0, True))
    assert (status.last_state.terminated is not None) == is_killed


def test_a_node_without_memory_kills_what_exceeds_its_request_most():
    made = workload(nodes=[node()])
    made.check_memory({"db-1": {"app": (0, 150 * MI)}, "db-2": {"app": (0, 199 * MI)}}, START)
    assert [pod.is_ready for pod in made.pods] == [True, True]
    made.nodes["a"].memory = 300 * MI
    made.check_memory({"db-1": {"app": (0, 150 * MI)}, "db-2": {"app": (0, 199 * MI)}}, START)
    assert [pod.is_ready for pod in made.pods] == [True, False]


def test_a_container_that_is_killed_again_waits_longer_each_time():
    made, now = workload(start_seconds=5), START
    waits = []
    for _ in range(4):
        made.kill(made.pods[0], now)
        waits.append(made.pods[0].starts_at - now)
        now += waits[-1] + 5
        made.advance(now)
        assert made.pods[0].is_ready
    assert waits == [0, 10, 20, 40]
    made.kill(made.pods[0], now + 600)
    assert made.pods[0].starts_at == now + 600


@pytest.mark.parametrize(
    ("cpu", "behaviour", "condition", "size"),
    [
        pytest.param("2", {}, None, 2000, id="a resize is done"),
        pytest.param("4", {}, "Deferred", 1000, id="a node without room defers it"),
        pytest.param("5", {}, "Infeasible", 1000, id="a node that is too small refuses it"),
        pytest.param("500m", {"resizes": "ignored"}, None, 1000, id="a kubelet that is away does nothing"),
        pytest.param("500m", {"resizes": "deferred"}, "Deferred", 1000, id="others may defer it"),
    ],
)
def test_a_resize_ends_as_the_node_says(cpu, behaviour, condition, size):
    made = workload(nodes=[node()], **behaviour)
    pod = made.pods[0]
    made.resize(pod, spec(cpu), START)
    assert pod.size[0].cpu == 1000, "it takes a moment"
    made.advance(START + 2)
    reported = pod.api.status.condition("PodResizePending")
    assert (reported.reason if reported else None, pod.size[0].cpu) == (condition, size)


def test_a_deferred_resize_follows_when_there_is_room():
    made = workload(nodes=[node()])
    made.resize(made.pods[0], spec("3500m"), START)
    made.advance(START + 2)
    made.scale(1, START + 10)
    assert made.pods[0].size[0].cpu == 3500
    assert made.pods[0].api.status.condition("PodResizePending") is None


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        pytest.param("Deployment", ["db-2", "db-3"], id="a Deployment's pod gets a fresh name"),
        pytest.param("StatefulSet", ["db-0", "db-1"], id="a StatefulSet's pod comes back"),
    ],
)
def test_an_evicted_pod_is_replaced_and_starts(kind, after):
    made = workload(kind)
    made.delete(made.pods[0], START)
    assert names(made) == after
    assert len(made.ready) == 1
    made.advance(made.next_due)
    assert (made.next_due, len(made.ready)) == (float("inf"), 2)


def test_a_daemonset_has_a_pod_on_each_node():
    made = workload("DaemonSet", nodes=[node("a"), node("b")])
    assert sorted(pod.node for pod in made.pods) == ["a", "b"]
    made.remove_node("a", START)
    assert [pod.node for pod in made.pods] == ["b"]


def test_a_pod_without_room_is_pending_until_there_is_some():
    made = workload(replicas=5, nodes=[node()])
    assert [pod.api.status.phase for pod in made.pods].count("Pending") == 1
    made.scale(4, START)
    assert len(made.pods) == len(made.ready) == 4, "the Pending pod is deleted first"


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        pytest.param("Deployment", {"b"}, id="the pods of a Deployment move after five minutes"),
        pytest.param("StatefulSet", {"a", "b"}, id="those of a StatefulSet wait"),
    ],
)
def test_a_node_that_is_not_ready(kind, after):
    made = workload(kind, nodes=[node("a"), node("b")])
    made.set_node("a", START, is_ready=False)
    assert len(made.ready) == 1
    while made.next_due <= START + 600:
        made.advance(made.next_due)
    assert {pod.node for pod in made.pods} == after


def test_only_the_active_pod_is_ready():
    made = workload("StatefulSet", active_label=("role", "leader"))
    assert made.ready == []
    made.label(made.pods[1], {"role": "leader"}, START)
    assert [pod.name for pod in made.ready] == ["db-1"]
    assert all(made.is_up(pod, START) for pod in made.pods)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_rollout_replaces_all_pods_and_keeps_most_of_them_up(kind):
    made = workload(kind, replicas=4)
    made.roll_out(made.template, START)
    fewest, most = 4, 4
    while made.next_due < START + 3600:
        fewest, most = min(fewest, len(made.ready)), max(most, len(made.pods))
        made.advance(made.next_due)
    assert {pod.revision for pod in made.pods} == {2}
    assert (fewest, most) == (3, 5 if kind == "Deployment" else 4)


def test_watchers_see_each_change_once():
    made, seen = workload(), []
    made.on_change = lambda old, new: seen.append((old, new))
    made.kill(made.pods[0], START, reason="OOMKilled")
    ((old, new),) = seen
    assert old.status.container_statuses[0].last_state.terminated is None
    assert new.status.container_statuses[0].last_state.terminated.reason == "OOMKilled"
