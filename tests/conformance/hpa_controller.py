"""controller.jsonl: whole reconciliations, as the operator will run them, against a recorded world."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests import reasons
from tests.conformance.differences import differences
from tests.conformance.hpa_readings import reading_of
from tests.conformance.hpa_values import history, history_of, read_by_go, settings_of
from tests.conformance.registry import checks
from tests.conformance.versions import current
from trimtab.decide.horizontal.memory import EMPTY
from trimtab.decide.horizontal.observation.observation import Observation, ScaleFailure
from trimtab.decide.horizontal.observation.owners import ConflictingHpa
from trimtab.decide.horizontal.observation.pods import snapshot_pod
from trimtab.decide.horizontal.reasons import Code
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.selection.selector_check import parse_selector
from trimtab.decide.horizontal.status.after_write import after_scale, after_status
from trimtab.model.core.pod import Pod
from trimtab.model.core.workloads import Scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from trimtab.model.json import wire
from trimtab.model.times import parse_time

_RESOURCES = {
    ("", "ReplicationController"): "replicationcontrollers",
    ("apps", "Deployment"): "deployments.apps",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
}
_MOST_ATTEMPTS = 5


@dataclass
class World:
    """The cluster and the controller's memory between steps."""

    gates: FeatureGates
    settings: Any
    hpas: dict[str, Any] = field(default_factory=dict)
    pods: list[tuple[str, Any]] = field(default_factory=list)
    scales: dict[tuple[str, str, str], Any] = field(default_factory=dict)
    memories: dict[str, Any] = field(default_factory=dict)
    selectors: dict[str, str] = field(default_factory=dict)


def world_of(case):
    state = case["state"]
    world = World(current().gates(case), settings_of(case["settings"]))
    world.selectors = dict(state.get("hpaSelectors", {}))
    for hpa in case["hpas"]:
        world.hpas[key_of(hpa)] = typed_hpa(hpa)
    put_pods(world, case["pods"])
    put_scales(world, case["scales"])
    for key in world.hpas:
        lists = ("recommendations", "scaleUpEvents", "scaleDownEvents")
        world.memories[key] = history_of({name: state.get(name, {}).get(key) for name in lists})
    return world


def key_of(data):
    return f"{data['metadata'].get('namespace', '')}/{data['metadata']['name']}"


def typed_hpa(data):
    return wire.convert(data | {"spec": read_by_go(data["spec"])}, HorizontalPodAutoscaler)


def put_pods(world, pods):
    gate = world.gates.pod_level_resources
    world.pods = [
        (
            pod["metadata"].get("namespace", ""),
            snapshot_pod(wire.convert(read_by_go(pod), Pod), pod_level_resources=gate),
        )
        for pod in pods
    ]


def put_scales(world, scales):
    for one in scales:
        world.scales[one["resource"], one["namespace"], one["name"]] = one


@checks("function", "reconcile")
def reconcile(case):
    world, found = world_of(case), []
    for number, step in enumerate(case["steps"]):
        prepare(world, step)
        answer = run(world, step, case["writeBack"])
        want = {key: value for key, value in step["expect"].items() if key not in _NOTES}
        want = comparable(want)
        difference = differences(
            want, comparable({key: value for key, value in answer.items() if key in want})
        )
        if difference:
            found += [f"steps[{number}].{line}" for line in difference.splitlines()]
    return "\n".join(found) or None


_NOTES = {"outOfRangeConversion", "unorderedMessage"}


def comparable(answer):
    """Leave out what means nothing: an absent and an empty list, and the spelling of quantities."""
    status = answer.get("status")
    if status is None:
        return answer
    plain = wire.to_builtins(wire.convert(status, HorizontalPodAutoscalerStatus))
    return answer | {"status": plain}


def prepare(world, step):
    for hpa in step.get("hpas", ()):
        old = world.hpas.get(key_of(hpa))
        new = typed_hpa(hpa)
        world.hpas[key_of(hpa)] = msgspec.structs.replace(new, status=old.status) if old else new
    for key in step.get("deleteHpas", ()):
        world.hpas.pop(key, None)
    if "pods" in step:
        put_pods(world, step["pods"])
    put_scales(world, step.get("scales", ()))


def run(world, step, write_back):
    key = step["key"]
    if key not in world.hpas:
        world.memories.pop(key, None)
        world.selectors.pop(key, None)
        return {**nothing_done(), "deleted": True, "state": history(EMPTY)}
    seen = observe(world, key, step)
    now = parse_time(step["now"])
    decision = reasons.checked(seen, now)
    # The same world by our own rules: another decision perhaps, and just as true a reason.
    reasons.checked(msgspec.structs.replace(seen, rules=Rules.TRIMTAB), now)
    remember_selector(world, key, seen, decision)
    updates, error = [], None
    if decision.scale_to is not None:
        updates, error = write_scale(world, seen, decision.scale_to, step, write_back)
    decision = after_scale(seen, decision, error)
    status_error = step.get("statusUpdateError")
    refused = bool(status_error) and decision.status_changed
    if refused:
        decision = after_status(seen, decision, status_error["message"])
    elif write_back and decision.status_changed:
        world.hpas[key] = msgspec.structs.replace(world.hpas[key], status=decision.status)
    world.memories[key] = decision.memory
    return answer_of(decision, updates, refused=refused)


def nothing_done():
    return {
        "error": None,
        "scaleUpdates": [],
        "statusUpdated": False,
        "events": [],
        "reconciliation": None,
        "metricComputations": [],
        "observedDesiredReplicas": None,
    }


def observe(world, key, step):
    hpa = world.hpas[key]
    namespace, scale, failure = hpa.metadata.namespace, None, None
    found = find_scale(world, hpa)
    if isinstance(found, ScaleFailure):
        failure = found
    else:
        scale = wire.convert(found["scale"], Scale)
    selector = parse_selector(scale.status.selector) if scale else ""
    pods = ()
    if scale and scale.status.selector and not isinstance(selector, str):
        pods = tuple(pod for where, pod in world.pods if where == namespace and selector.matches(pod.labels))
    return Observation(
        hpa=hpa,
        scale=scale,
        scale_failure=failure,
        pods=pods,
        conflicting_hpas=rivals(world, key, namespace),
        memory=world.memories.get(key, EMPTY),
        settings=world.settings,
        gates=world.gates,
        rules=current().rules,
        samples=read_all(hpa, scale, selector, step) if scale else (),
    )


def rivals(world, key, namespace):
    return tuple(
        ConflictingHpa(key=other, selector=selector)
        for other, selector in world.selectors.items()
        if other != key and other.partition("/")[0] == namespace
    )


def remember_selector(world, key, seen, decision):
    """Note the selector of an HPA once its metrics were computed, as upstream's registry does."""
    if decision.trace.counted_pods is not None and decision.reason.code not in _UNSELECTED:
        world.selectors[key] = seen.scale.status.selector


_UNSELECTED = {Code.SELECTOR_MISSING, Code.SELECTOR_INVALID}


def read_all(hpa, scale, selector, step):
    if isinstance(selector, str):
        return ()
    answers = read_by_go(step["metrics"])
    return tuple(
        reading_of(spec, answers, hpa.metadata.namespace, scale.status.selector) for spec in hpa.spec.metrics
    )


def find_scale(world, hpa):
    reference = hpa.spec.scale_target_ref
    if reference.api_version.count("/") > 1:
        return ScaleFailure(message=f"unexpected GroupVersion string: {reference.api_version}", step="parse")
    resource = _RESOURCES.get((reference.group, reference.kind))
    if resource is None:
        message = f'no matches for kind "{reference.kind}" in group "{reference.group}"'
        return ScaleFailure(message=message, step="map")
    found = world.scales[resource, hpa.metadata.namespace, reference.name]
    return ScaleFailure(message=found["error"]["message"]) if found.get("error") else found


def write_scale(world, seen, replicas, step, write_back):
    """Write the scale and try again on a conflict, as the shell does."""
    reference, namespace = seen.hpa.spec.scale_target_ref, seen.hpa.metadata.namespace
    resource = _RESOURCES[reference.group, reference.kind]
    errors, updates = list(step.get("scaleUpdateErrors", ())), []
    for _ in range(_MOST_ATTEMPTS):
        error = errors.pop(0) if errors else None
        update = {"resource": resource, "namespace": namespace, "name": reference.name, "replicas": replicas}
        updates.append(update | ({"error": error} if error else {}))
        if error is None:
            if write_back:
                found = world.scales[resource, namespace, reference.name]
                scale = found["scale"] | {"spec": {"replicas": replicas}}
                world.scales[resource, namespace, reference.name] = found | {"scale": scale}
            return updates, None
        message = error["message"]
        if error.get("reason") != "Conflict":
            break
    return updates, message


def answer_of(decision, updates, *, refused):
    answer = {
        "error": decision.error or None,
        "scaleUpdates": updates,
        "statusUpdated": decision.status_changed,
        "events": [wire.to_builtins(event) for event in decision.events],
        "reconciliation": {"action": decision.action, "error": decision.error_label},
        "metricComputations": [
            {"metricType": one.type, "action": one.action, "error": one.error}
            for one in decision.computations
        ],
        "observedDesiredReplicas": decision.observed_desired,
        "state": history(decision.memory),
        "status": wire.to_builtins(decision.status),
    }
    if refused:
        answer["statusUpdateFailed"] = True
    return answer
