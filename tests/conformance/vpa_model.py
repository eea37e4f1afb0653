"""VPA vectors: cluster-state scenarios, garbage collection and OOM observation."""

from collections.abc import Callable
from typing import Any

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from tests.conformance.vpa_capping import without_empty
from tests.conformance.vpa_dumps import (
    as_doubles,
    config_of,
    dump_aggregate,
    dump_container,
    nanoseconds,
    saved,
)
from tests.unit.decide.vertical.samples import add_sample
from trimtab.decide.vertical.cluster_state.aggregates import Aggregate
from trimtab.decide.vertical.cluster_state.cluster import (
    ClusterState,
    ContainerId,
    PodId,
    PodState,
)
from trimtab.decide.vertical.cluster_state.garbage import AggregateCollector, collect_garbage
from trimtab.decide.vertical.cluster_state.vpa import AggregateKey, VPAState
from trimtab.decide.vertical.input.checkpoints import load_history, save_history
from trimtab.decide.vertical.input.oom import OOM, ooms_of_event, ooms_of_update
from trimtab.decide.vertical.input.usage import record_oom
from trimtab.decide.vertical.recommend.recommendation import RecommenderSettings
from trimtab.decide.vertical.recommend.recommender import PostProcessing, recommend_vpas
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.objects import Event
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.times import format_ns, parse_ns
from trimtab.model.vpa.types import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpointStatus


@checks("kind", "oomPodUpdate", stem="model")
def oom_pod_update(case):
    old, new = (wire.convert(case["input"][name] or {}, Pod) for name in ("oldPod", "newPod"))
    return differences(
        case["expect"], {"ooms": [_oom(oom) for oom in ooms_of_update(old, new, Rules.VPA_1_8)]}
    )


@checks("kind", "oomEvent", stem="model")
def oom_event(case):
    event = wire.convert(case["input"]["event"], Event)
    return differences(case["expect"], {"ooms": [_oom(oom) for oom in ooms_of_event(event)]})


def _oom(oom: OOM) -> dict[str, Any]:
    return {
        "time": format_ns(oom.time_ns),
        "memoryBytes": oom.memory_bytes,
        "namespace": oom.namespace,
        "pod": oom.pod,
        "container": oom.container,
    }


class _Scenario:
    """A cluster state and the operations of one case."""

    def __init__(self, case: dict[str, Any]) -> None:
        gates = case.get("featureGates") or {}
        self.state = ClusterState(
            config_of(case["config"]),
            Rules.VPA_1_8,
            per_vpa_config=bool(gates.get("PerVPAConfig")),
            block_columns=32,
        )
        self.collector = AggregateCollector(nanoseconds(case["gcIntervalSeconds"]))

    def step(self, step: dict[str, Any]) -> Any:
        """Do one operation and return its answer."""
        act = getattr(self, f"_{step['op']}")
        return act(step, parse_ns(step["now"]))

    def _addOrUpdatePod(self, step: dict[str, Any], now_ns: int) -> None:
        self.state.add_or_update_pod(_pod(step), step["labels"] or {}, step["phase"], now_ns)

    def _addOrUpdateContainer(self, step: dict[str, Any], now_ns: int) -> Any:
        millicores, memory = step["requestCPUMillicores"], step["requestMemoryBytes"]
        return {"error": self.state.add_or_update_container(_container(step), millicores, memory, now_ns)}

    def _addSample(self, step: dict[str, Any], now_ns: int) -> Any:
        time_ns = parse_ns(step["time"])
        return {
            "error": add_sample(
                self.state, _container(step), step["resource"], step["amount"], time_ns, now_ns
            )
        }

    def _recordOOM(self, step: dict[str, Any], now_ns: int) -> Any:
        oom = OOM(
            step["namespace"], step["pod"], step["container"], parse_ns(step["time"]), step["memoryBytes"]
        )
        return {"error": record_oom(self.state, oom, now_ns)}

    def _deletePod(self, step: dict[str, Any], _now_ns: int) -> None:
        self.state.delete_pod(_pod(step))

    def _addOrUpdateVPA(self, step: dict[str, Any], _now_ns: int) -> Any:
        vpa = wire.convert(step["vpa"], VerticalPodAutoscaler)
        self.state.add_or_update_vpa(vpa, Selector.parse(step["selector"]))
        return {"error": None}

    def _deleteVPA(self, step: dict[str, Any], _now_ns: int) -> Any:
        return {"error": self.state.delete_vpa(f"{step['namespace']}/{step['name']}")}

    def _loadCheckpoint(self, step: dict[str, Any], now_ns: int) -> Any:
        vpa = self.state.vpas.get(f"{step['namespace']}/{step['name']}")
        status = wire.convert(step["checkpoint"], VerticalPodAutoscalerCheckpointStatus)
        refusal = load_history(self.state, vpa, step["container"], status, now_ns) if vpa else "no such VPA"
        # Whether it is refused is behaviour, in which words is not.
        return {"error": refusal and (step["expect"]["error"] or refusal)}

    def _checkpoint(self, step: dict[str, Any], now_ns: int) -> Any:
        vpa = self.state.vpas.get(f"{step['namespace']}/{step['name']}")
        history = save_history(self.state, [vpa], now_ns) if vpa else {}
        return {"checkpoints": {name: saved(status) for (_, name), status in history.items()}}

    def _garbageCollect(self, step: dict[str, Any], now_ns: int) -> Any:
        collect_garbage(self.state, now_ns, _exists(step["existingControllers"]))
        return {"remainingAggregates": [_key(key) for key in sorted(self.state.aggregates)]}

    def _rateLimitedGarbageCollect(self, step: dict[str, Any], now_ns: int) -> Any:
        self.collector.collect(self.state, now_ns, _exists(step["existingControllers"]))
        return {"remainingAggregates": [_key(key) for key in sorted(self.state.aggregates)]}

    def _recommend(self, _step: dict[str, Any], now_ns: int) -> Any:
        vpas = [self.state.vpas[key] for key in sorted(self.state.vpas)]
        found = recommend_vpas(self.state, vpas, RecommenderSettings(), PostProcessing(), now_ns)
        return {
            "statuses": {one.vpa: wire.to_builtins(one.status) for one in found},
            "patchedVPAs": [one.vpa for one in found if one.is_changed],
        }

    def _dump(self, _step: dict[str, Any], now_ns: int) -> Any:
        state = self.state
        return {
            "pods": {"/".join(pod): _dump_pod(state.pods[pod]) for pod in sorted(state.pods)},
            "aggregates": [
                _dump_aggregate(key, state.aggregates[key], now_ns) for key in sorted(state.aggregates)
            ],
            "vpas": [_dump_vpa(state, state.vpas[key]) for key in sorted(state.vpas)],
        }


def _pod(step: dict[str, Any]) -> PodId:
    return PodId(step["namespace"], step["pod"])


def _container(step: dict[str, Any]) -> ContainerId:
    return ContainerId(_pod(step), step["container"])


def _key(key: AggregateKey) -> dict[str, str]:
    return {"namespace": key.namespace, "container": key.container, "labels": key.labels}


def _exists(controllers: list[str]) -> Callable[[VPAState], bool]:
    def exists(vpa: VPAState) -> bool:
        target = vpa.vpa.spec.target_ref
        return (
            target is not None and f"{vpa.vpa.metadata.namespace}/{target.kind}/{target.name}" in controllers
        )

    return exists


def _dump_pod(pod: PodState) -> dict[str, Any]:
    return {
        "labels": pod.label_set,
        "phase": pod.phase,
        "containers": {
            name: {
                **dump_container(container.history),
                "aggregatorLink": "direct" if container.is_bound else "byKey",
                "requestCPUMillicores": container.request_millicores,
                "requestMemoryBytes": container.request_bytes,
            }
            for name, container in pod.containers.items()
        },
    }


def _dump_aggregate(key: AggregateKey, aggregate: Aggregate, now_ns: int) -> dict[str, Any]:
    is_scaled = aggregate.is_under_vpa and aggregate.scaling_mode not in (None, "Off")
    recommendation = aggregate.last_recommendation
    return {
        **_key(key),
        **dump_aggregate(aggregate, now_ns, weights=False),
        "isUnderVPA": aggregate.is_under_vpa,
        "needsRecommendation": is_scaled,
        "creationTime": format_ns(aggregate.created_ns),
        "updateMode": aggregate.update_mode,
        "lastRecommendation": None if recommendation is None else wire.to_builtins(recommendation),
    }


def _dump_vpa(state: ClusterState, vpa: VPAState) -> dict[str, Any]:
    pods = state.namespace(vpa.vpa.metadata.namespace).pods
    return {
        "namespace": vpa.vpa.metadata.namespace,
        "name": vpa.vpa.metadata.name,
        "podCount": vpa.pod_count,
        "hasMatchedPods": vpa.has_matched_pods,
        "matchingPods": ["/".join(pod) for pod in sorted(pods) if state.is_matched(pods[pod], vpa)],
        "aggregates": [_key(key) for key in sorted(vpa.aggregates)],
        "hasRecommendation": vpa.has_recommendation,
        "status": wire.to_builtins(vpa.status()),
    }


@checks("kind", "scenario", stem="model")
def scenario(case):
    run = _Scenario(case)
    for number, step in enumerate(case["ops"]):
        got = run.step(step)
        want = step.get("expect")
        if want and "checkpoints" in want:
            want = {"checkpoints": {name: saved(status) for name, status in want["checkpoints"].items()}}
        wrong = differences(as_doubles(without_empty(want)), as_doubles(without_empty(got)))
        if wrong:
            return f"ops[{number}] {step['op']}: {wrong}"
    return None
