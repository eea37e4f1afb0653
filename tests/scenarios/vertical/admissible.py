"""What must hold for every pod on an API server: what it admits as it is, it admits with our sizes.

Creation goes by dry runs through `admit_pod`; resizes are sent to a stored copy, one after the other.
"""

import copy
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.scenarios.vertical.random_pods import Case, Json, Namespace
from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType
from trimtab.cluster.resource import LIMIT_RANGES, PODS
from trimtab.decide.vertical.admission.admit import AdmissionContext, admit_pod
from trimtab.decide.vertical.resources.limit_ranges import LimitRanges, NamespaceRanges
from trimtab.decide.vertical.resources.pod_rules import has_claims
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.observation import ObservedController, ObservedVPA, UpdateObservation
from trimtab.decide.vertical.update.resize.plan import plan_resize, size_running_pod
from trimtab.model.core.objects import LimitRange
from trimtab.model.core.pod import Pod, PodSpec, ResourceRequirements
from trimtab.model.core.server_rules import ServerRules
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab_lab.embedded import NAMESPACES
from trimtab_lab.patches import json_patch

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RAW_PODS = PODS.untyped()
SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


@dataclass(frozen=True)
class Answer:
    """The way that a question went, with the QoS class and the pod-level resources of an admitted pod."""

    way: str
    qos_class: str = ""
    pod_level: ResourceRequirements | None = None


@dataclass
class Found:
    """What came of the cases: how many went which way, and every broken promise."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    answers: dict[int, tuple[Answer, ...]] = field(default_factory=dict)
    """By seed: how the server answered each question, to compare servers."""

    def note(self, case: Case, way: str, made: Json | None = None) -> None:
        """Keep one answer of the server, with the pod that it made."""
        self.counts[way] += 1
        answer = Answer(way)
        if made is not None:
            own = wire.convert(made["spec"], PodSpec).resources
            answer = Answer(way, made["status"]["qosClass"], own)
        self.answers[case.seed] = (*self.answers.get(case.seed, ()), answer)


@dataclass(frozen=True)
class Trial:
    """One namespace of an API server."""

    client: Client
    name: str
    found: Found
    rules: ServerRules

    async def run(self, namespace: Namespace) -> None:
        """Try all pods of a namespace."""
        await self.client.create(NAMESPACES, {"metadata": {"name": self.name}})
        ranges: tuple[LimitRange, ...] = ()
        if namespace.items:
            body = {"metadata": {"name": "bounds"}, "spec": {"limits": namespace.items}}
            ranges = (await self.client.create(LIMIT_RANGES, body, self.name),)
        for case in namespace.cases:
            await self._try(case, NamespaceRanges(ranges).of(self.name))

    async def _try(self, case: Case, ranges: LimitRanges) -> None:
        plain = await self._create(case, case.pod, "plain")
        if plain is None:
            return
        sent = self._as_reviewed(case, plain)
        answer = admit_pod(sent, self.name, _context(case.vpas[0], self.name, ranges, self.rules))
        if answer.error:
            self._complain(case, f"admission failed: {answer.error}")
        patched = _patched(sent, answer.operations)
        self.found.counts["sized" if patched["spec"] != sent["spec"] else "left alone"] += 1
        self.found.counts["held back"] += "trimtab.dev/held-back" in patched["metadata"].get(
            "annotations", {}
        )
        sized = await self._create(case, patched, "sized")
        if sized is None:
            return
        self._compare(case, plain, sized, may_begin=True)
        await self._resize(case, ranges)

    def _as_reviewed(self, case: Case, made: Json) -> Json:
        """Return the pod as webhooks see it: with defaults, but not with those that follow admission."""
        sent = {**made, "metadata": _own(made["metadata"])}
        del sent["status"]  # servers before 1.37 keep the QoS class of a status that is posted
        if self.rules.completes_pod_level and "resources" in case.pod["spec"]:
            sent["spec"] = {**made["spec"], "resources": case.pod["spec"]["resources"]}
        return sent

    async def _create(self, case: Case, body: Json, what: str) -> Json | None:
        try:
            made = await self.client.create(RAW_PODS, body, self.name, query=[("dryRun", "All")])
        except errors.ApiError as error:
            self.found.note(case, f"{what}: refused")
            if what != "plain":
                self._complain(case, f"admitted as it was, refused with our sizes: {error}")
            return None
        self.found.note(case, f"{what}: admitted", made)
        return made

    async def _resize(self, case: Case, ranges: LimitRanges) -> None:
        """Resize a stored copy by both VPAs, one after the other."""
        first = stored = await self.client.create(RAW_PODS, case.pod, self.name)
        for vpa in case.vpas:
            pod = wire.convert(stored, Pod)
            sizing = size_running_pod(pod, vpa, ranges, server_rules=self.rules)
            plan = plan_resize(pod, vpa, sizing.containers, NOW, server_rules=self.rules)
            if not plan.operations:
                self.found.counts["resize: nothing to change"] += 1
                continue
            name = stored["metadata"]["name"]
            notes = {"metadata": {"annotations": {**plan.annotations_before, **plan.annotations_after}}}
            try:
                if not plan.refusal:
                    await self.client.patch(RAW_PODS, name, self.name, notes)
                resized = await self.client.patch(
                    RAW_PODS, name, self.name, list(plan.operations), how=PatchType.JSON, subresource="resize"
                )
            except errors.ApiError as error:
                self.found.note(case, "resize: refused")
                if not plan.refusal:
                    self._complain(case, f"the resize was refused: {error}")
                return
            self.found.note(case, "resize: accepted", resized)
            self.found.counts["resize: accepted with claims"] += has_claims(pod.spec)
            if plan.refusal:
                self._complain(case, f"the resize was accepted though: {plan.refusal}")
                return
            self._compare(case, first, resized, may_begin=False)
            stored = resized

    def _compare(self, case: Case, before: Json, after: Json, *, may_begin: bool) -> None:
        was, is_now = before["status"]["qosClass"], after["status"]["qosClass"]
        if was != is_now and not (may_begin and was == "BestEffort"):
            self._complain(case, f"QoS class {was} became {is_now}")
        kept, found = _without_sizes(before), _without_sizes(after)
        for spec in (kept, found):
            # The server fills in pod-level amounts by those of the containers.
            spec["resources"] = case.pod["spec"].get("resources") and _named_in(
                spec["resources"], case.pod["spec"]["resources"]
            )
        if kept != found:
            parts = [(name, kept.get(name), found.get(name)) for name in {*kept, *found}]
            changed = [part for part in parts if part[1] != part[2]]
            self._complain(case, f"something besides CPU and memory of main containers changed: {changed}")
        if after["metadata"].get("annotations", {}).get("note") != before["metadata"].get(
            "annotations", {}
        ).get("note"):
            self._complain(case, "an annotation of another was lost")

    def _complain(self, case: Case, what: str) -> None:
        self.found.broken.append(f"seed {case.seed}: {what}")


def _named_in(resources: Json, written: Json) -> Json:
    """Return the part of pod-level resources that the user wrote."""
    return {
        kind: {name: amount for name, amount in resources[kind].items() if name in amounts}
        for kind, amounts in written.items()
    }


def _own(metadata: Json) -> Json:
    kept = {name: value for name, value in metadata.items() if name not in SERVERS_OWN}
    return {**kept, "name": ""} if metadata.get("generateName") else kept


def _context(
    vpa: VerticalPodAutoscaler, namespace: str, ranges: LimitRanges, rules: ServerRules
) -> AdmissionContext:
    moved = wire.convert(
        {**wire.to_builtins(vpa), "metadata": {"name": "base", "namespace": namespace, "generation": 1}},
        VerticalPodAutoscaler,
    )
    seen = UpdateObservation(
        vpas=(ObservedVPA(vpa=moved, selector="app=db"),),
        controllers={f"StatefulSet/{namespace}/db": ObservedController(replicas=1)},
    )
    gates = FeatureGates()
    return AdmissionContext(
        seen.index(gates, Rules.TRIMTAB), seen.owners(), {}, {namespace: ranges}, server_rules=rules
    )


def _patched(raw: Json, operations: tuple[Json, ...]) -> Json:
    result = json_patch.apply(copy.deepcopy(raw), json_patch.parse(wire.encode(operations)))
    assert isinstance(result, dict)
    return result


def _without_sizes(pod: Json) -> Json:
    spec: Json = copy.deepcopy(pod["spec"])
    for container in spec["containers"]:
        resources: dict[str, Any] = container.get("resources") or {}
        for kind in ("requests", "limits"):
            rest = {
                name: text for name, text in resources.get(kind, {}).items() if name not in ("cpu", "memory")
            }
            resources.pop(kind, None)
            if rest:
                resources[kind] = rest
        container["resources"] = resources
    return spec
