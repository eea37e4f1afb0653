"""A workload in virtual time: kubelets, a StatefulSet controller and an updater that may crash, all by one seed.

Readiness falls only by what the updater requests, so a test can say how many pods must be Ready at any moment.
"""

import copy
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.unit.decide.vertical.policy_builders import (
    ALL_GATES,
    FOLLOWER,
    LEADER,
    NOW,
    raw_pod,
    recommended,
    scope,
    vpa,
    world,
)
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict
from trimtab.decide.vertical.update.eviction_limits import NO_EVICTION_LIMITS
from trimtab.decide.vertical.update.loop import update_loop
from trimtab.decide.vertical.update.loop_state import UpdaterSettings, UpdaterState
from trimtab.decide.vertical.update.lost_responses import due_checks, mark_lost, resolve_lost
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire

TICK = timedelta(seconds=10)
LOST_ANSWERS = 0.1
"""The share of requests whose answer never arrives, whether they are carried out at once, later or not at all."""
LATEST = 34
"""The seconds after which an API server carries no write out any more."""
SCOPES = [scope("leader", pods=LEADER)]
SIZES = ["1Gi", "2Gi", "4Gi", "8Gi"]
Raw = dict[str, Any]


@dataclass
class Workload:
    """What one seed decides once."""

    dice: random.Random
    replicas: int
    mode: str
    restarts: bool
    tolerance: float
    has_limits: bool
    tells_generations: bool
    """Whether the kubelet says which spec its conditions are about (Kubernetes 1.33 and later)."""

    @staticmethod
    def of(seed: int) -> "Workload":
        dice = random.Random(seed)
        return Workload(
            dice,
            dice.randint(2, 6),
            dice.choice(["Recreate", "InPlaceOrRecreate", "InPlaceOrRecreate", "InPlace"]),
            dice.random() < 0.7,
            dice.choice([0.0, 0.25, 0.5]),
            dice.random() < 0.5,
            dice.random() < 0.7,
        )

    @property
    def floor(self) -> int:
        """The least number of Ready pods; with tolerance 0 one at a time may be away."""
        return self.replicas - (int(self.replicas * self.tolerance) or 1)


@dataclass
class Cluster:
    """The pods as they are; the updater sees them as they were a moment ago."""

    work: Workload
    now: datetime = NOW
    pods: dict[str, Raw] = field(default_factory=dict)
    wakes: dict[str, datetime] = field(default_factory=dict)
    """When the next thing happens to a pod, by uid."""
    targets: dict[str, str] = field(default_factory=lambda: {"base": "1Gi", "leader": "8Gi"})
    leader: int = 0
    made: int = 0
    is_generous: bool = False
    """Whether every resize is granted at once, so that things come to rest."""
    log: list[str] = field(default_factory=list)
    late: list[tuple[datetime, Action]] = field(default_factory=list)
    """Requests whose answer was lost, and when they are carried out."""

    def __post_init__(self) -> None:
        for place in range(self.work.replicas):
            self._make(f"db-{place}")
            pod = self.pods[f"db-{place}"]
            pod["status"]["phase"] = "Running"
            self._has(pod)
            self._set_ready(pod, True)
        self.move_role(0)

    # What others do.

    def move_role(self, place: int) -> None:
        self.leader = place
        for name, pod in self.pods.items():
            role = LEADER if name == f"db-{place}" else FOLLOWER
            pod["metadata"]["labels"] = {"app": "db", **role}

    def ready(self) -> int:
        return sum(_condition(pod, "Ready") == "True" for pod in self.pods.values())

    def tick(self) -> None:
        """Let about ten seconds pass for controller and kubelets."""
        self.now += TICK + timedelta(milliseconds=self.work.dice.randint(-400, 400))
        due = [action for moment, action in self.late if moment <= self.now]
        self.late = [(moment, action) for moment, action in self.late if moment > self.now]
        for action in due:
            self._carry_out(action)
        for name in [f"db-{place}" for place in range(self.work.replicas)]:
            pod = self.pods.get(name)
            if pod is None:
                self._make(name)
            elif self.wakes.get(pod["metadata"]["uid"], self.now) <= self.now:
                self._step(name, pod)

    def _make(self, name: str) -> None:
        self.made += 1
        memory = self.targets["leader" if name == f"db-{self.leader}" else "base"]
        limits = {"memory": memory} if self.work.has_limits else {}
        pod = raw_pod(name, FOLLOWER, memory=memory, limits=limits, phase="Pending", uid=f"uid-{self.made}")
        pod["metadata"]["annotations"] = {}
        pod["metadata"]["labels"] = {"app": "db", **(LEADER if name == f"db-{self.leader}" else FOLLOWER)}
        if self.work.restarts:
            policy = {"resourceName": "memory", "restartPolicy": "RestartContainer"}
            pod["spec"]["containers"][0]["resizePolicy"] = [policy]
        self.pods[name] = pod
        self._sleep(pod, 30)

    def _sleep(self, pod: Raw, most: int) -> None:
        self.wakes[pod["metadata"]["uid"]] = self.now + timedelta(seconds=self.work.dice.randint(0, most))

    def _step(self, name: str, pod: Raw) -> None:
        if pod["metadata"].get("deletionTimestamp"):
            del self.pods[name]
        elif pod["status"]["phase"] == "Pending":
            pod["status"]["phase"] = "Running"
            self._has(pod)
            self._set_ready(pod, False)
            self._sleep(pod, 900)
        elif _condition(pod, "Ready") == "False":
            self._set_ready(pod, True)
        elif self._given(pod) != self._asked(pod):
            self._resize(pod)
        else:
            self._say(pod, None)

    def _resize(self, pod: Raw) -> None:
        """Play kubelet: put off, refuse, or carry out, some time after the request."""
        dice, state = self.work.dice, pod.setdefault("kubelet", {})
        if state.get("asked") != self._asked(pod):
            pod["kubelet"] = {"asked": copy.deepcopy(self._asked(pod)), "fate": self._fate(pod)}
            self._sleep(pod, 60)
            return
        fate = state["fate"]
        if fate == "granted":
            changes = self._given(pod)["requests"] != self._asked(pod)["requests"] or (
                self._given(pod)["limits"] != self._asked(pod)["limits"]
            )
            self._has(pod)
            self._say(pod, None)
            if self.work.restarts and changes:
                self._set_ready(pod, False)
                self._sleep(pod, 900)
            return
        if fate == "progress":
            self._say(pod, {"type": "PodResizeInProgress", "status": "True"})
            state["fate"] = "granted"
            self._sleep(pod, 120)
            return
        kind = "PodResizeInProgress" if fate == "Error" else "PodResizePending"
        self._say(pod, {"type": kind, "status": "True", "reason": fate, "message": "says the kubelet"})
        if fate != "Infeasible" and (self.is_generous or dice.random() < 0.2):
            state["fate"] = "progress"
        self._sleep(pod, 120)

    def _fate(self, pod: Raw) -> str:
        if self.is_generous:
            return "progress"
        lowers = self._asked(pod)["limits"].get("memory", "9Gi") < self._given(pod)["limits"].get(
            "memory", "0"
        )
        fates = [
            "progress",
            "progress",
            "Deferred",
            "Deferred",
            "Infeasible",
            "Error" if lowers else "progress",
        ]
        return self.work.dice.choice(fates)

    def _asked(self, pod: Raw) -> Raw:
        found: Raw = pod["spec"]["containers"][0]["resources"]
        return found

    def _given(self, pod: Raw) -> Raw:
        found: Raw = pod["status"]["containerStatuses"][0]["resources"]
        return found

    def _has(self, pod: Raw) -> None:
        given = copy.deepcopy(self._asked(pod))
        pod["status"]["containerStatuses"] = [{"name": "app", "resources": given}]

    def _say(self, pod: Raw, condition: Raw | None) -> None:
        kept = [condition for condition in pod["status"]["conditions"] if condition["type"] == "Ready"]
        before = [condition for condition in pod["status"]["conditions"] if condition["type"] != "Ready"]
        if (
            condition
            and before
            and (before[0]["type"], before[0].get("reason"))
            == (
                condition["type"],
                condition.get("reason"),
            )
        ):
            condition = {**condition, "lastTransitionTime": before[0]["lastTransitionTime"]}
        elif condition:
            # Kubernetes tells times in whole seconds.
            condition = {**condition, "lastTransitionTime": self.now.replace(microsecond=0).isoformat()}
        if condition and self.work.tells_generations:
            condition["observedGeneration"] = pod["metadata"].get("generation", 1)
        pod["status"]["conditions"] = [*kept, *([condition] if condition else [])]

    def _set_ready(self, pod: Raw, is_ready: bool) -> None:
        others = [condition for condition in pod["status"]["conditions"] if condition["type"] != "Ready"]
        ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": self.now.isoformat()}
        pod["status"]["conditions"] = [ready, *others]

    # What the updater does.

    def snapshot(self) -> tuple[Pod, ...]:
        return tuple(
            wire.convert({key: value for key, value in pod.items() if key != "kubelet"}, Pod)
            for _, pod in sorted(self.pods.items())
        )

    def perform(self, action: Action) -> ActionResult:
        """Play API server."""
        dice = self.work.dice
        if not self._is_there(action):
            return ActionResult.FAILED
        if not isinstance(action, Evict) and dice.random() < 0.05 and not self.is_generous:
            return dice.choice([ActionResult.FAILED, ActionResult.INFEASIBLE, ActionResult.RATE_LIMITED])
        if not isinstance(action, Evict):
            self.pods[action.pod.name]["metadata"]["annotations"].update(action.plan.annotations_before)
        if dice.random() >= LOST_ANSWERS or self.is_generous:
            self._carry_out(action)
            return ActionResult.DONE
        self.log.append("lost answer")
        fate = dice.choice(["at once", "later", "never"])
        if fate == "at once":
            self._carry_out(action)
        elif fate == "later":
            self.log.append("carried out late")
            self.late.append((self.now + timedelta(seconds=dice.randint(1, LATEST)), action))
        return ActionResult.UNKNOWN

    def _is_there(self, action: Action) -> bool:
        """Return whether the pod is the one that is meant, and is not being deleted."""
        pod = self.pods.get(action.pod.name)
        if pod is None or pod["metadata"]["uid"] != action.pod.metadata.uid:
            return False
        return not (isinstance(action, Evict) and pod["metadata"].get("deletionTimestamp"))

    def _carry_out(self, action: Action) -> None:
        if not self._is_there(action):
            return
        pod = self.pods[action.pod.name]
        if isinstance(action, Evict):
            pod["metadata"]["deletionTimestamp"] = self.now.isoformat()
            self._set_ready(pod, False)
            self._sleep(pod, 60)
            self.log.append("evict")
            return
        pod["metadata"]["generation"] = pod["metadata"].get("generation", 1) + 1
        for operation in action.operations:
            _add(pod, operation["path"], operation["value"])
        kept = {key: value for key, value in action.plan.annotations_after.items() if value is not None}
        pod["metadata"]["annotations"].update(kept)
        self._sleep(pod, 20)
        self.log.append("resize")


@dataclass
class Updater:
    """An updater that sees the cluster late, and may die at any action."""

    cluster: Cluster
    state: UpdaterState = field(default_factory=UpdaterState)
    seen: tuple[Pod, ...] = ()
    reads_lost: bool = True
    """Whether it reads the pods of lost answers, as the server has them."""

    def loop(self, *, crash_after: int | None = None, is_late: bool = False) -> None:
        cluster, work = self.cluster, self.cluster.work
        if not (is_late and self.seen):
            self.seen = cluster.snapshot()
        observed = world(
            [
                vpa("base", recommended(cluster.targets["base"]), mode=work.mode, min_replicas=1),
                vpa(
                    "leader",
                    recommended(cluster.targets["leader"]),
                    mode=work.mode,
                    scope="leader",
                    min_replicas=1,
                ),
            ],
            self.seen,
            SCOPES,
            replicas=work.replicas,
        )
        settings = UpdaterSettings(eviction_tolerance=work.tolerance, eviction_limits=NO_EVICTION_LIMITS)
        self._read_lost()
        lost: dict[str, datetime] = {}
        loop = update_loop(observed, self.state, cluster.now, settings, ALL_GATES)
        done = 0
        try:
            action = next(loop)
            while True:
                outcome = cluster.perform(action)
                if outcome is ActionResult.UNKNOWN:
                    lost[action.pod.metadata.uid] = cluster.now
                done += 1
                if done == crash_after:
                    self.crash()
                    return
                action = loop.send(outcome)
        except StopIteration as end:
            self.state = mark_lost(end.value.state, lost)

    def _read_lost(self) -> None:
        cluster = self.cluster
        if self.reads_lost and (uids := due_checks(self.state, cluster.now)):
            found = {pod.metadata.uid: pod for pod in cluster.snapshot()}
            self.state = resolve_lost(self.state, {uid: found.get(uid) for uid in uids}, cluster.now)

    def longest_loss(self) -> timedelta:
        """Return for how long the oldest lost answer has held its place."""
        moments = [
            each.response_lost_at
            for each in self.state.disruptions.values()
            if each.response_lost_at is not None
        ]
        return max((self.cluster.now - moment for moment in moments), default=timedelta())

    def crash(self) -> None:
        """Die and start again, with nothing but what the cluster holds."""
        self.cluster.log.append("crash")
        self.state, self.seen = UpdaterState(), ()
        # A fresh process begins when the requests of its predecessor are at their end.
        self.cluster.late = []


def _condition(pod: Raw, kind: str) -> str:
    return next(
        (condition["status"] for condition in pod["status"]["conditions"] if condition["type"] == kind), ""
    )


def _add(pod: Raw, path: str, value: Any) -> None:
    *parents, last = path.split("/")[1:]
    place: Any = pod
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    place[last] = copy.deepcopy(value)
