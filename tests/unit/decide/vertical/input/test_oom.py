"""Out-of-memory kills seen in pod updates and in eviction events: each once."""

import msgspec
import pytest

from trimtab.decide.vertical.input.oom import OOM, ooms_of_event, ooms_of_update
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.objects import Event
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.times import ZERO_TIME_NS

NOON_NS = 1_768_478_400 * 10**9
"""2026-01-15T12:00:00Z."""

RUNNING = {"running": {"startedAt": "2026-01-15T11:00:00Z"}}
KILLED = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-01-15T12:00:00Z", "exitCode": 137}}
KILLED_AGAIN = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-01-15T12:05:00Z", "exitCode": 137}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}
FAILED = {"terminated": {"reason": "Error", "finishedAt": "2026-01-15T12:00:00Z", "exitCode": 1}}


def pod(state, last=None, restarts=0, memory="1Gi") -> Pod:
    return wire.convert(
        {
            "metadata": {"name": "db-0", "namespace": "shop"},
            "spec": {"containers": [{"name": "app", "resources": {"requests": {"memory": memory}}}]},
            "status": {
                "containerStatuses": [
                    {"name": "app", "state": state, "lastState": last or {}, "restartCount": restarts}
                ]
            },
        },
        Pod,
    )


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(
            pod(RUNNING), pod(KILLED, memory="2Gi"), [2**31], id="seen dead: it had what it has now"
        ),
        pytest.param(
            pod(RUNNING),
            pod(RUNNING, KILLED, 1, "2Gi"),
            [2**30],
            id="seen alive again: it had what it had before",
        ),
        pytest.param(
            pod(KILLED), pod(RUNNING, KILLED, 1), [], id="a kill that was seen is not counted again"
        ),
        pytest.param(
            pod(RUNNING, KILLED, 1), pod(RUNNING, KILLED, 1), [], id="nor is one of an earlier life"
        ),
        pytest.param(
            pod(RUNNING),
            pod(BACK_OFF, KILLED, 1, "2Gi"),
            [2**30],
            id="seen in back-off: the dead state fell into a gap of the watch",
        ),
        pytest.param(
            pod(BACK_OFF, FAILED, 1),
            pod(RUNNING, KILLED_AGAIN, 2),
            [2**30],
            id="seen alive after a back-off: it died in between",
        ),
        pytest.param(
            pod(BACK_OFF, KILLED, 1), pod(RUNNING, KILLED, 1), [], id="a back-off that ends is no second kill"
        ),
        pytest.param(pod(KILLED), pod(BACK_OFF, KILLED, 1), [], id="nor is one that begins"),
        pytest.param(pod(RUNNING), pod(FAILED), [], id="an error is not a kill"),
        pytest.param(Pod(), pod(KILLED), [], id="a container without a past is not judged"),
    ],
)
def test_pod_updates(old, new, want):
    assert [oom.memory_bytes for oom in ooms_of_update(old, new)] == want


def event(kind="Pod", reason="Evicted", **notes) -> Event:
    annotations = {
        "offending_containers": "app,side",
        "offending_containers_usage": "1Gi,2Gi",
        "starved_resource": "memory,memory",
        **notes,
    }
    return wire.convert(
        {
            "metadata": {"annotations": annotations, "creationTimestamp": "2026-01-15T12:00:00Z"},
            "involvedObject": {"kind": kind, "namespace": "shop", "name": "db-0"},
            "reason": reason,
        },
        Event,
    )


@pytest.mark.parametrize(
    ("one", "want"),
    [
        pytest.param(event(), [("app", 2**30), ("side", 2**31)], id="every container that starved"),
        pytest.param(event(starved_resource="memory,cpu"), [("app", 2**30)], id="of memory only"),
        pytest.param(
            event(offending_containers_usage="1Gi,much"),
            [("app", 2**30)],
            id="usage we cannot read is left out",
        ),
        pytest.param(event(starved_resource="memory"), [], id="lists of different lengths say nothing"),
        pytest.param(event(kind="Node"), [], id="a node's event is not a pod's"),
        pytest.param(event(reason="Killing"), [], id="another reason is another matter"),
        pytest.param(
            event(offending_containers="", offending_containers_usage="", starved_resource=""),
            [],
            id="nobody named",
        ),
    ],
)
def test_eviction_events(one, want):
    assert ooms_of_event(one) == tuple(
        OOM("shop", "db-0", container, NOON_NS, memory_bytes) for container, memory_bytes in want
    )


def test_a_kill_without_a_time_is_of_no_time():
    undated_kill = pod({"terminated": {"reason": "OOMKilled"}})
    bare = msgspec.structs.replace(undated_kill, spec=Pod().spec)
    (kill,) = ooms_of_update(pod(RUNNING), bare)
    assert kill == OOM("shop", "db-0", "app", ZERO_TIME_NS, 0)
    undated = msgspec.structs.replace(event(), metadata=ObjectMeta(annotations=event().metadata.annotations))
    assert {kill.time_ns for kill in ooms_of_event(undated)} == {ZERO_TIME_NS}


def test_a_kill_has_the_place_and_time_of_its_container():
    assert ooms_of_update(pod(RUNNING), pod(KILLED)) == (OOM("shop", "db-0", "app", NOON_NS, 2**30),)
    assert ooms_of_update(pod(RUNNING), pod(RUNNING, KILLED_AGAIN, 1)) == (
        OOM("shop", "db-0", "app", NOON_NS + 300 * 10**9, 2**30),
    )


@pytest.mark.parametrize("order", [("app", "new"), ("new", "app")], ids=["odd last", "odd first"])
def test_a_new_container_does_not_hide_the_kill_of_another(order):
    killed = pod(KILLED)
    status = msgspec.structs.replace(
        killed.status,
        container_statuses=tuple(
            msgspec.structs.replace(killed.status.container_statuses[0], name=name) for name in order
        ),
    )
    found = ooms_of_update(pod(RUNNING), msgspec.structs.replace(killed, status=status))
    assert [kill.container for kill in found] == ["app"]


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(pod(RUNNING), pod(RUNNING, KILLED, 1), 1, id="restarted between two versions"),
        pytest.param(pod(RUNNING), pod(RUNNING, KILLED, 0), 0, id="without a restart"),
        pytest.param(pod(RUNNING), pod(BACK_OFF, KILLED, 1), 0, id="not running again"),
        pytest.param(pod(BACK_OFF), pod(RUNNING, KILLED, 1), 0, id="not running before"),
        pytest.param(pod(KILLED), pod(KILLED_AGAIN, restarts=1), 1, id="dead twice, restarted in between"),
        pytest.param(pod(KILLED), pod(KILLED), 0, id="dead once"),
    ],
)
def test_upstream_sees_fewer_kills(old, new, want):
    assert len(ooms_of_update(old, new, Rules.VPA_1_8)) == want
