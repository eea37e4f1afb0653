"""Decides about HPAs that name plug-ins: filters before what is proposed, policies between that and what is set.

The answers are part of the observation, so that `decide` makes the same decision again without the plug-ins. `answer_again` asks
them again before a replay.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec

from trimtab.decide.horizontal.decide import propose, settle
from trimtab.decide.horizontal.decision import Decision, Proposed
from trimtab.decide.horizontal.metrics.combine import LossFallback, Result
from trimtab.decide.horizontal.metrics.kinds import Failure
from trimtab.decide.horizontal.observation.observation import Observation, policies_of
from trimtab.decide.horizontal.observation.owners import Owner, OwnerLookup, owner_key
from trimtab.decide.horizontal.observation.plugin_answers import (
    NODES_UNREADABLE,
    FilterAnswer,
    NodeSnapshot,
    PolicyAnswer,
)
from trimtab.decide.horizontal.selection.owners import DEEPEST_CHAIN
from trimtab.decide.horizontal.selection.selection import effective_strategy
from trimtab.model.core.meta import OwnerReference
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.metric_kinds import name_of, target_of
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, MetricSpec, ReplicaPolicySpec
from trimtab.model.plugin_names import is_plugin_name
from trimtab.plugins.guard import Guard, Guards, PluginFailure
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.pod_filter import (
    FilterNode,
    FilterPod,
    FilterTarget,
    PodFilterInput,
    check_left_out,
)
from trimtab.plugins.replica_policy import (
    PolicyMetric,
    ReplicaPolicyInput,
    ReplicaProposal,
    check_proposal,
)


def names_plugins(spec: HorizontalPodAutoscalerSpec) -> bool:
    """Return whether an HPA names a plug-in."""
    strategy = spec.selection_strategy
    return bool(spec.replica_policies) or (strategy is not None and is_plugin_name(strategy))


def missing_plugins(
    spec: HorizontalPodAutoscalerSpec, gates: FeatureGates, guards: Guards
) -> Iterator[PluginFailure]:
    """Yield a failure for each plug-in that an HPA names and that is not loaded, or is of another kind."""
    strategy = effective_strategy(spec.selection_strategy, gates)
    named = [(PluginKind.POD_FILTER, strategy)] if is_plugin_name(strategy) else []
    named += [(PluginKind.REPLICA_POLICY, policy.name) for policy in spec.replica_policies]
    return (guards.not_loaded(kind, name) for kind, name in named if guards.find(kind, name) is None)


def failures_of(observation: Observation) -> list[str]:
    """Return why plug-ins gave no answer to an observation."""
    answers = [observation.filter_answer, *policies_of(observation)]
    return [answer.failure for answer in answers if answer is not None and answer.failure]


def decide_with_plugins(
    observation: Observation, guards: Guards, now: datetime, last: Observation | None = None
) -> tuple[Observation, Decision]:
    """Decide about an HPA, and return the observation with the answers of the plug-ins that it names.

    A pod filter is not called again while everything that it sees is as in the `last` observation of the same HPA.
    """
    if last is not None and _sees_the_same(observation, last):
        observation = msgspec.structs.replace(observation, filter_answer=last.filter_answer)
    else:
        observation = _add_filter(observation, guards, now.timestamp())
    proposed = propose(observation, now.timestamp())
    if proposed.problem is None and proposed.selection is not None:
        policies = observation.hpa.spec.replica_policies
        answers = tuple(_ask_policy(policy, proposed, guards) for policy in policies)
        observation = msgspec.structs.replace(observation, policy_answers=answers)
        proposed = msgspec.structs.replace(proposed, seen=observation)
    return observation, settle(proposed, policies_of(observation))


def _sees_the_same(observation: Observation, last: Observation) -> bool:
    answer = last.filter_answer
    return (
        answer is not None
        and not answer.failure
        and observation.pods is last.pods
        and observation.hpa.spec is last.hpa.spec
        and observation.nodes == last.nodes
        and observation.owners == last.owners
        and observation.scale == last.scale
    )


def _add_filter(observation: Observation, guards: Guards, now: float) -> Observation:
    strategy = effective_strategy(observation.hpa.spec.selection_strategy, observation.gates)
    if not is_plugin_name(strategy):
        return observation
    return msgspec.structs.replace(observation, filter_answer=_ask_filter(strategy, observation, guards, now))


def _ask_filter(name: str, observation: Observation, guards: Guards, now: float) -> FilterAnswer:
    guard = guards.find(PluginKind.POD_FILTER, name)
    if guard is None:
        return _failed_filter(guards.not_loaded(PluginKind.POD_FILTER, name))
    if guard.plugin.declaration.needs_nodes and observation.nodes is None:
        return FilterAnswer(
            plugin=name,
            version=guard.plugin.version,
            failure=f"{guard.plugin} needs nodes, which cannot be listed and watched (RBAC, API server)",
            reason=NODES_UNREADABLE,
        )
    seen = filter_input(observation, with_owners=guard.plugin.declaration.needs_owners)
    answer = guard.call(
        seen,
        lambda left_out: check_left_out(left_out, seen.pods),
        user=observation.hpa.key,
        now=now,
    )
    if isinstance(answer, PluginFailure):
        return _failed_filter(answer)
    return FilterAnswer(plugin=name, version=guard.plugin.version, left_out=answer)


def _failed_filter(failure: PluginFailure) -> FilterAnswer:
    return FilterAnswer(
        plugin=failure.plugin, version=failure.version, failure=failure.message, reason=failure.reason
    )


def filter_input(observation: Observation, *, with_owners: bool = False) -> PodFilterInput:
    """Return what a pod filter sees. Its mappings cannot be changed."""
    target, scale = observation.target, observation.scale
    nodes = {name: _node(name, node) for name, node in (observation.nodes or {}).items()}
    labels: dict[int, Mapping[str, str]] = {}
    for pod in observation.pods:
        if id(pod.labels) not in labels:  # pods of one workload share theirs
            labels[id(pod.labels)] = MappingProxyType(pod.labels)
    lookups = observation.owners
    return PodFilterInput(
        # One expression for all pods, because a call per pod costs as much as the pod.
        pods=tuple(
            [
                FilterPod(
                    name=pod.name,
                    labels=labels[id(pod.labels)],
                    phase=pod.phase,
                    is_ready=pod.phase == "Running" and pod.ready == "True",
                    is_deleted=pod.is_deleted,
                    started=pod.started,
                    owners=tuple(_chain(pod.owners, lookups)) if with_owners else pod.owners,
                    node_name=pod.node,
                    node=nodes.get(pod.node) if nodes else None,
                )
                for pod in observation.pods
            ]
        ),
        target=FilterTarget(
            namespace=observation.hpa.metadata.namespace,
            kind=target.kind,
            name=target.name,
            api_version=target.api_version,
            uid=target.uid,
            replicas=0 if scale is None else scale.spec.replicas,
        ),
    )


def _node(name: str, node: NodeSnapshot) -> FilterNode:
    return FilterNode(name=name, is_unschedulable=node.is_unschedulable, labels=MappingProxyType(node.labels))


def _chain(
    references: tuple[OwnerReference, ...], lookups: Mapping[str, OwnerLookup]
) -> Iterator[OwnerReference]:
    """Yield the owners of a pod, then theirs, upwards."""
    level, visited = references, set[str]()
    for _ in range(DEEPEST_CHAIN):
        above: list[OwnerReference] = []
        for reference in level:
            key = owner_key(reference)
            if key in visited:
                continue
            visited.add(key)
            yield reference
            owner = lookups.get(key)
            if isinstance(owner, Owner):
                above += owner.owners
        level = tuple(above)


def _ask_policy(policy: ReplicaPolicySpec, proposed: Proposed, guards: Guards) -> PolicyAnswer:
    guard = guards.find(PluginKind.REPLICA_POLICY, policy.name)
    if guard is None:
        return _failed_policy(guards.not_loaded(PluginKind.REPLICA_POLICY, policy.name))
    seen = policy_input(policy, proposed)
    answer: ReplicaProposal | PluginFailure = guard.call(
        seen, check_proposal, user=proposed.seen.hpa.key, now=proposed.now
    )
    if isinstance(answer, PluginFailure):
        return _failed_policy(answer)
    return PolicyAnswer(
        plugin=policy.name,
        version=guard.plugin.version,
        replicas=answer.replicas,
        reason=answer.reason,
        memory=answer.memory,
    )


def _failed_policy(failure: PluginFailure) -> PolicyAnswer:
    return PolicyAnswer(
        plugin=failure.plugin, version=failure.version, failure=failure.message, reason=failure.reason
    )


def policy_input(policy: ReplicaPolicySpec, proposed: Proposed) -> ReplicaPolicyInput:
    """Return what a replica policy sees. Its mappings cannot be changed."""
    hpa, bounds = proposed.seen.hpa, proposed.bounds
    return ReplicaPolicyInput(
        namespace=hpa.metadata.namespace,
        name=hpa.metadata.name,
        replicas=proposed.seen.current,
        min_replicas=bounds.lowest,
        max_replicas=bounds.highest,
        metrics=tuple(
            _metric(spec, result)
            for spec, result in zip(hpa.spec.metrics, proposed.metrics.proposals, strict=True)
        ),
        now=proposed.now,
        parameters=_frozen(policy.parameters),
        memory=_frozen(proposed.memory.policies.get(policy.name)),
    )


def _metric(spec: MetricSpec, result: Result) -> PolicyMetric:
    name = name_of(spec)
    if isinstance(result, Failure):
        return PolicyMetric(name=name, type=spec.type, error=result.message)
    if isinstance(result, LossFallback):
        return PolicyMetric(name=name, type=spec.type, replicas=result.replicas, error=result.failure.message)
    unit = 1 if target_of(spec).average_utilization is not None else 1000
    return PolicyMetric(
        name=name,
        type=spec.type,
        value=result.value / unit,
        target=result.target / unit,
        total=None if result.total is None else result.total / 1000,
        replicas=result.replicas,
    )


def _frozen(value: Any) -> Any:
    """Return JSON that a plug-in cannot change."""
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(item) for key, item in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def answer_again(
    observation: Observation, guards: Guards, now: datetime
) -> tuple[Observation, tuple[str, ...]]:
    """Return a recorded observation with the plug-ins' answers of now, and which answers stay as recorded.

    A plug-in is called only if it is loaded in the version of the record, and did not fail then.
    """
    notes: list[str] = []
    recorded: list[FilterAnswer | PolicyAnswer] = [*observation.policy_answers]
    if observation.filter_answer is not None:
        recorded.insert(0, observation.filter_answer)
    usable: list[Guard] = []
    for answer in recorded:
        kind = PluginKind.POD_FILTER if isinstance(answer, FilterAnswer) else PluginKind.REPLICA_POLICY
        guard = guards.find(kind, answer.plugin)
        if note := _why_recorded(answer, guard):
            notes.append(f"{kind.label} {answer.plugin}: the recorded answer counts, because {note}")
        elif guard is not None:
            usable.append(guard)
    if not usable:
        return observation, tuple(notes)
    called = {guard.plugin.name for guard in usable}
    if observation.filter_answer is not None and observation.filter_answer.plugin in called:
        observation = _add_filter(observation, guards, now.timestamp())
    if any(answer.plugin in called for answer in observation.policy_answers):
        proposed = propose(observation, now.timestamp())
        answers = tuple(
            _ask_policy(policy, proposed, guards) if answer.plugin in called else answer
            for policy, answer in zip(
                observation.hpa.spec.replica_policies, observation.policy_answers, strict=True
            )
        )
        observation = msgspec.structs.replace(observation, policy_answers=answers)
    return observation, tuple(notes)


def _why_recorded(answer: FilterAnswer | PolicyAnswer, guard: Guard | None) -> str:
    """Return why a plug-in is not called again, or an empty text if it can be."""
    if answer.failure:
        return "the plug-in failed then"
    if guard is None:
        return f"version {answer.version} is not loaded; name it in --plugins"
    if guard.plugin.version != answer.version:
        return f"it is of version {answer.version}, and version {guard.plugin.version} is loaded"
    return ""
