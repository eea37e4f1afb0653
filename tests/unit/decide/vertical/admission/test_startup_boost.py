"""A boosted pod is the pod that it would be without its boost, but for its CPU, and but for a while."""

import itertools
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import (
    NOW,
    Recorder,
    index,
    pod,
    raw_pod,
    recommended,
    run,
    vpa,
    world,
)
from trimtab.decide.vertical.admission.admit import AdmissionContext, admit_pod
from trimtab.decide.vertical.update.actions import Resize
from trimtab.decide.vertical.update.loop_state import UPSTREAM_SETTINGS, UpdaterState
from trimtab.model.core.pod import Pod, ResourceRequirements
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab_lab.patches.json_patch import apply as apply_json_patch

GATES = FeatureGates(cpu_startup_boost=True, in_place=True)
MODES = ["Off", "Initial", "Recreate", "Auto", "InPlace", "InPlaceOrRecreate"]
NOTE = "vpaCpuStartupBoost/app"
SHAPES = [
    {"requests": {"cpu": "100m", "memory": "256Mi"}},
    {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
    {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "100m", "memory": "256Mi"}},
    {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
    {"requests": {"cpu": "100m"}},
    {"requests": {"memory": "256Mi"}, "limits": {"memory": "256Mi"}},
    {},
]
BOOSTS: list[dict[str, Any]] = [{"type": "Factor", "factor": 5}, {"type": "Quantity", "quantity": "500m"}]
POLICIES = [
    {},
    {"controlledResources": ["memory"]},
    {"controlledResources": ["cpu"]},
    {"controlledValues": "RequestsOnly"},
]


def boosting(mode, boost, policy=None, target=("300m", "2Gi"), **more):
    """A VPA that boosts container `app`, and recommends what it controls; nothing without a target."""
    policy = {"containerName": "app", **(policy or {}), "startupBoost": {"cpu": boost}}
    controlled = policy.get("controlledResources", ["cpu", "memory"])
    cpu, memory = target or (None, None)
    found = recommended(memory if "memory" in controlled else None, cpu=cpu if "cpu" in controlled else None)
    return vpa("base", found if target else None, mode=mode, policies=[policy], min_replicas=1, **more)


def written(resources):
    """A pod under creation, as its user wrote it."""
    raw = raw_pod("db-0")
    del raw["status"], raw["spec"]["affinity"]
    raw["spec"]["containers"][0]["resources"] = resources
    return raw


def admitted(raw, owner, gates=GATES, **known):
    """Return the pod as our webhook leaves it."""
    seen = world([owner])
    context = AdmissionContext(index(seen, gates), seen.owners(), gates=gates, **known)
    return apply_json_patch(raw, list(admit_pod(raw, "shop", context).operations))


def ready(raw):
    """Return the pod when it has been ready for an hour, with what it asks for."""
    since = (NOW - timedelta(hours=1)).isoformat()
    (container,) = raw["spec"]["containers"]
    status = {
        "phase": "Running",
        "startTime": since,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
        "containerStatuses": [{"name": "app", "resources": container["resources"]}],
    }
    return {**raw, "status": status}


def resources(raw):
    return wire.convert(raw, Pod).spec.containers[0].resources


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("later", ["the same", "Off", "no VPA"])
def test_a_pod_whose_boost_has_ended_is_the_pod_that_was_never_boosted(mode, later):
    """Memory went back to the template in mode Off, and where no CPU was known from before the boost."""
    boosted = 0
    for shape, boost, policy, target in itertools.product(SHAPES, BOOSTS, POLICIES, [("300m", "2Gi"), None]):
        owner = boosting(mode, boost, policy, target)
        raw = admitted(written(shape), owner)
        plain = admitted(written(shape), owner, FeatureGates(in_place=True))
        if NOTE not in raw["metadata"]["annotations"]:
            continue
        boosted += 1
        vpas = {"the same": [owner], "Off": [boosting("Off", boost, policy, target)], "no VPA": []}[later]
        api = Recorder()
        run(world(vpas, [wire.convert(ready(raw), Pod)]), gates=GATES, settings=UPSTREAM_SETTINGS, api=api)
        (action,) = api.actions
        assert isinstance(action, Resize)
        assert action.plan.annotations_after[NOTE] is None
        assert {operation["path"].rpartition("/")[2] for operation in action.operations} <= {"cpu"}
        after = resources(apply_json_patch(raw, list(action.operations)))
        assert after == resources(plain), (shape, boost, policy, target)
    assert boosted > 40


CLAIMING = {"requests": {"cpu": "100m", "memory": "1Gi"}, "claims": [{"name": "gpu"}]}


@pytest.mark.parametrize("boost", BOOSTS, ids=["factor", "quantity"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("shape", "known", "words"),
    [
        pytest.param(CLAIMING, {}, "no startup boost: pods with resource claims", id="claims"),
        pytest.param(SHAPES[5], {}, "no startup boost of app: without a CPU request", id="no CPU request"),
        pytest.param({}, {}, "no startup boost of app: without a CPU request", id="best effort"),
        pytest.param(
            SHAPES[0], {"serves_resize": False}, "no startup boost: this cluster", id="no resize in place"
        ),
    ],
)
def test_a_boost_that_could_never_be_taken_back_is_not_given(shape, known, words, mode, boost):
    owner = boosting(mode, boost, {"controlledResources": ["memory"]})
    raw = admitted(written(shape), owner, **known)
    assert NOTE not in raw["metadata"]["annotations"]
    assert words in raw["metadata"]["annotations"]["trimtab.dev/held-back"]
    assert resources(raw) == resources(admitted(written(shape), owner, FeatureGates(in_place=True)))


def test_a_boost_of_old_without_a_cpu_request_before_it_does_not_count_as_resized():
    raw = written({"requests": {"cpu": "500m", "memory": "1Gi"}})
    raw["metadata"]["annotations"] = {NOTE: '{"requests":{"memory":"256Mi"}}'}
    owner = boosting("Off", BOOSTS[1])
    _, result = run(world([owner], [wire.convert(ready(raw), Pod)]), gates=GATES)
    (pod_result,) = result.pod_results
    assert pod_result.action == "none"
    assert pod_result.reason == "its startup boost is over; its size stays as it is"


def set_ephemeral_storage(own):
    own["requests"]["ephemeral-storage"] = "1Gi"


def set_memory(own):
    own["requests"]["memory"] = "3Gi"
    if "memory" in own.get("limits", {}):
        own["limits"]["memory"] = "3Gi"


def set_cpu_limit(own):
    own.setdefault("limits", {})["cpu"] = "7"


@pytest.mark.parametrize("other", [set_ephemeral_storage, set_memory, set_cpu_limit])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", [("300m", "2Gi"), None], ids=["recommended", "not recommended"])
@pytest.mark.parametrize("shape", SHAPES[:2], ids=["requests", "limits"])
def test_a_boost_is_given_once_whatever_another_webhook_sets(shape, target, mode, other):
    """The API server calls us again after it; the boosted CPU was taken for the user's, and boosted."""
    owner = boosting(mode, BOOSTS[0], target=target)
    once = admitted(written(shape), owner)
    cpu, note = (
        once["spec"]["containers"][0]["resources"]["requests"]["cpu"],
        once["metadata"]["annotations"][NOTE],
    )
    other(once["spec"]["containers"][0]["resources"])
    again = admitted(once, owner)
    assert again["spec"]["containers"][0]["resources"]["requests"]["cpu"] == cpu
    noted = wire.decode(again["metadata"]["annotations"][NOTE], ResourceRequirements)
    assert noted.requests["cpu"] == wire.decode(note, ResourceRequirements).requests["cpu"]
    assert admitted(again, owner) == again, "and no further"


def test_what_another_webhook_sets_of_the_same_resource_is_the_users():
    owner = boosting("Off", BOOSTS[0])
    once = admitted(written(SHAPES[3]), owner)
    assert once["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"
    once["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    again = admitted(once, owner)
    assert again["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "15"


def killed(raw, name, *, is_ready=False):
    """Return the pod in a loop of OOM kills."""
    terminated = {
        "reason": "OOMKilled",
        "startedAt": (NOW - timedelta(seconds=40)).isoformat(),
        "finishedAt": (NOW - timedelta(seconds=20)).isoformat(),
    }
    raw = ready({**raw, "metadata": {**raw["metadata"], "name": name, "uid": name}})
    raw["status"]["containerStatuses"][0] |= {"restartCount": 9, "lastState": {"terminated": terminated}}
    if not is_ready:
        raw["status"]["conditions"][0]["status"] = "False"
    return wire.convert(raw, Pod)


@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[2]], ids=["Burstable", "Guaranteed"])
@pytest.mark.parametrize("mode", MODES)
def test_a_boosted_pod_in_a_loop_of_kills_is_updated_as_any_other(mode, shape):
    """It never was Ready, so that its boost never ended, and it was spared all that time."""
    asked = {}
    for gates in (GATES, FeatureGates(in_place=True)):
        first = boosting(mode, {**BOOSTS[0], "durationSeconds": 60}, target=None)
        raw = admitted(written(shape), first, gates)
        assert (NOTE in raw["metadata"].get("annotations", {})) is gates.cpu_startup_boost
        owner = boosting(mode, {**BOOSTS[0], "durationSeconds": 60}, target=("100m", "4Gi"))
        pods = [killed(raw, "db-0"), killed(raw, "db-1")]
        pods += [pod(f"db-{place}", cpu="100m", memory="4Gi") for place in range(2, 8)]
        api = Recorder()
        _, result = run(world([owner], pods), gates=gates, settings=UPSTREAM_SETTINGS, api=api)
        asked[gates.cpu_startup_boost] = api.asked
        for action in api.actions:
            if isinstance(action, Resize):
                paths = [operation["path"].rpartition("/resources/")[2] for operation in action.operations]
                assert paths == ["requests/memory", "limits/memory"], "the boost goes on"
                assert NOTE not in action.plan.annotations_after
        reasons = {entry.pod: entry.reason for entry in result.pod_results}
        if mode not in ("Off", "Initial"):
            assert reasons["shop/db-0"] == "it was OOM-killed soon after it started"
    assert asked[True] == asked[False]
    assert bool(asked[True]) is (mode not in ("Off", "Initial"))


@pytest.mark.parametrize("mode", MODES)
def test_a_boost_that_is_over_ends_before_an_urgent_update(mode):
    owner = boosting(mode, BOOSTS[0], target=("100m", "4Gi"))
    raw = admitted(written(SHAPES[1]), boosting(mode, BOOSTS[0], target=None))
    asked, _ = run(
        world([owner], [killed(raw, "db-0", is_ready=True)]), gates=GATES, settings=UPSTREAM_SETTINGS
    )
    assert asked == [("resize", "db-0")]


@pytest.mark.parametrize("target", ["100m", "300m"], ids=["as the template", "more than the template"])
def test_pods_that_come_back_unchanged_but_for_their_boost_are_not_evicted_for_ever(target):
    """The boosted CPU of a replacement differed always, so that no eviction counted as fruitless."""
    counts = []
    for gates in (FeatureGates(in_place=True), GATES):
        owner = boosting("Recreate", {**BOOSTS[0], "durationSeconds": 15}, target=(target, "4Gi"))
        state, now, evictions, made = UpdaterState(), NOW, 0, {}
        for name in ("db-0", "db-1"):
            made[name] = ready(written({"requests": {"cpu": target, "memory": "1Gi"}}))
        for _ in range(120):
            now += timedelta(minutes=1)
            for name, raw in made.items():
                raw["metadata"]["name"] = name
            api = Recorder()
            pods = [wire.convert(raw, Pod) for raw in made.values()]
            _, result = run(world([owner], pods), state, now=now, gates=gates, api=api)
            state = result.state
            for action in api.actions:
                name = action.pod.name
                if isinstance(action, Resize):
                    raw = apply_json_patch(made[name], list(action.operations))
                    del raw["metadata"]["annotations"][NOTE]
                else:
                    evictions += 1
                    raw = admitted(written(SHAPES[0]), owner, gates)
                    raw["spec"]["containers"][0]["resources"]["requests"]["memory"] = (
                        "1Gi"  # by another webhook
                    )
                    raw["metadata"] |= {"uid": f"{name}-{evictions}", "creationTimestamp": now.isoformat()}
                made[name] = ready(raw)
                made[name]["status"]["conditions"][0]["lastTransitionTime"] = now.isoformat()
        counts.append(evictions)
    assert counts[0] == counts[1] < 8
