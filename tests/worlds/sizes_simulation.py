"""Plays a sized workload in `trimtab.library.simulator`: the production code decides, without programs and sockets."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from tests.worlds.sizes_demand import ROLE, Demand
from tests.worlds.sizes_judge import CPU, MEMORY, Bounds, Judge, Meant, Seen
from tests.worlds.world import Happening, Life, Rules, World
from trimtab.library.simulator import life as backtest
from trimtab.library.simulator.life import settings_of
from trimtab.library.simulator.load import LoadByFunction
from trimtab.library.simulator.vpa_runs import Refusal
from trimtab.library.simulator.workload import Behaviour, SimulatedNode, SimulatedPod, Used, Workload
from trimtab.library.trace import RELATIVE_START
from trimtab.model.core.objects import LimitRange
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope

Json = dict[str, Any]
NAME, HOME = "db", "default"
LOOK = 60.0
AFTER = 600.0
"""Seconds after a trouble in which what waited for its end can follow."""
WORDS = {
    403: "exceeded quota",
    404: "the server could not find the requested resource",
    422: "Pod is invalid",
    429: "Cannot evict pod as it would violate the pod's disruption budget.",
}


def play(world: World, rules: Rules) -> Life:
    """Play a world."""
    return _Stage(world, rules).live()


class _Stage:
    """The world while it is played."""

    def __init__(self, world: World, rules: Rules) -> None:
        start = world.start
        self.world, self.told, self.meant = world, Life(), Meant(start)
        self.judge = Judge(self.told, self.meant)
        self.demand = Demand(start["usage"], world.seed, start["day"])
        self.failing: set[str] = set()
        self._advised: dict[str, tuple[VerticalPodAutoscaler, dict[str, Bounds]]] = {}
        nodes = start["nodes"]
        self.workload = Workload(
            NAME,
            self._template(start["requests"]),
            kind=start["kind"],
            replicas=start["pods"],
            nodes=tuple(
                SimulatedNode(f"node-{number}", round(nodes["cpu"] * 1000), round(nodes["memory"]))
                for number in range(nodes["count"])
            ),
            behaviour=Behaviour(
                start_seconds=start["starts"], active_label=(ROLE, "leader") if start["active"] else None
            ),
            now=RELATIVE_START,
        )
        day = timedelta(seconds=start["day"])
        settings = settings_of(
            "" if rules is Rules.OURS else "vpa-1.8",
            feature_gates="InPlace=true",
            memory_aggregation_interval=day,
            memory_histogram_decay_half_life=day,
            cpu_histogram_decay_half_life=day,
            confidence_interval_cpu=day,
            confidence_interval_memory=day,
            in_bounds_lifetime=day / 2,
        )
        for role, number in start["roles"].items():
            for pod in [pod for pod in self.workload.pods if ROLE not in pod.labels][:number]:
                self.workload.label(pod, {ROLE: role}, RELATIVE_START)
        self.life = backtest.Life(
            self.workload,
            LoadByFunction(self._used),
            settings,
            scopes=[self._scope(name) for name in self.meant.scopes if self.meant.scopes[name]],
            vpas=[self._vpa(name) for name in self.meant.scopes],
            limit_ranges=_ranges(start["range"]),
            # What runs already has been measured when the first VPA is made.
            metrics_delay=0.0,
            role_label=ROLE,
        )
        if start["budget"]:
            self.life.min_available = start["pods"] - start["budget"]
        count, self.workload.on_kill = self.workload.on_kill, self._killed
        self._count_kill = count
        change, self.workload.on_change = self.workload.on_change, self._changed
        self._count_change = change
        self._count_request, self.life.did = self.life.did, self._did  # type: ignore[method-assign]

    @property
    def now(self) -> float:
        """Return seconds since the world began."""
        return self.life.now - self.life.start

    def live(self) -> Life:
        """Let the world pass, and return what came of it."""
        life = self.life
        for happening in self.world.happenings:
            life.at(happening.at, self._happen(happening))
        every = LOOK if self.world.seconds <= 172800 else 3 * LOOK

        def look_often() -> float:
            self.look()
            return life.now + every

        # Beside the measuring, before the programs act on it.
        life.repeat(3, life.start, look_often)
        found = life.run(self.world.seconds).outcomes
        sums = {
            "OOM kills": found.oom_kills,
            "restarts": found.restarts,
            "evictions": found.evictions,
            "resizes": found.resizes,
            "writes": found.writes,
            "pod-hours": found.pod_hours,
            "throttled minutes": found.throttled_minutes,
            "starved minutes": sum(found.starved_minutes.values()),
            "starved core-hours": found.starved[CPU],
            "starved GiB-hours": found.starved[MEMORY] / 2**30,
            "wasted core-hours": found.wasted[CPU],
            "wasted GiB-hours": found.wasted[MEMORY] / 2**30,
        }
        self.told.outcomes |= {name: float(amount) for name, amount in sums.items()}
        return self.told

    def look(self) -> None:
        """Let the judge see all pods and recommendations."""
        self._give_roles()
        self.judge.look(self.now, [self._seen(pod) for pod in self.workload.pods], self._advice())

    def _seen(self, pod: SimulatedPod) -> Seen:
        (size,), now = pod.size, self.life.now
        learners = self.meant.matching(pod.labels)
        vpa = next(iter(learners), "")
        is_running = self.workload.is_running(pod, now)
        cores, held = self._needs(pod, now) if is_running else (0.0, 0.0)
        is_served = is_running and "usage" not in self.life.missing
        return Seen(
            pod.name,
            pod.api.metadata.uid,
            pod.labels.get(ROLE, ""),
            vpa,
            {CPU: size.cpu / 1000, MEMORY: size.memory},
            {
                name: amount
                for name, amount in ((CPU, size.cpu_limit / 1000), (MEMORY, size.memory_limit))
                if amount
            },
            {CPU: cores, MEMORY: held} if is_running else {},
            pod.is_ready,
            tuple(learners),
            self.meant.promises(vpa),
            frozenset({CPU, MEMORY} - self.life.missing) if is_served else frozenset(),
            is_placed=bool(pod.node),
        )

    def _needs(self, pod: SimulatedPod, at: float) -> tuple[float, float]:
        begin = self.life.start if hasattr(self, "life") else RELATIVE_START
        return self.demand.used(
            pod.name, pod.labels.get(ROLE, ""), max(pod.starts_at - begin, 0.0), at - begin
        )

    def _used(self, pod: SimulatedPod, at: float) -> Used:
        cores, held = self._needs(pod, at)
        (size,) = pod.size
        # A container dies when it is above its limit, and never holds more.
        most = size.memory_limit + 1 if size.memory_limit else held
        return {"app": (round(cores * 1000), round(min(held, most)))}

    def _advice(self) -> dict[str, dict[str, Bounds]]:
        for vpa in self.life.vpas.values():
            if (known := self._advised.get(vpa.metadata.name)) is None or known[0] is not vpa:
                self._advised[vpa.metadata.name] = (vpa, _bounds(vpa))
        return {vpa.metadata.name: self._advised[vpa.metadata.name][1] for vpa in self.life.vpas.values()}

    def _killed(self, pod: SimulatedPod, reason: str) -> None:
        self._count_kill(pod, reason)
        if reason == "OOMKilled":
            seen = self._seen(pod)
            held = seen.limits.get(MEMORY) or self._needs(pod, self.life.now)[1]
            self.judge.killed(self.now, seen, max(held, seen.requests[MEMORY]))

    def _did(self, what: str, pod: str) -> None:
        self._count_request(what, pod)
        if what == "evict":
            self.judge.see_ready(ready.api.metadata.uid for ready in self.workload.ready)
            self.judge.evicted(self.now, pod)
            down = self.workload.replicas - len(self.workload.ready) + 1
            outcomes = self.told.outcomes
            outcomes["pods evicted at once"] = max(outcomes.get("pods evicted at once", 0.0), down)

    def _changed(self, old: Any, new: Any) -> None:
        self._count_change(old, new)
        if new is None:
            self.demand.forget(old.metadata.name)

    # Objects.

    def _template(self, amounts: Mapping[str, float]) -> Json:
        limit = self.world.start["limit"]
        resources: Json = {"requests": _quantities(amounts)}
        if limit:
            resources["limits"] = _quantities({name: amount * limit for name, amount in amounts.items()})
        return {
            "metadata": {"labels": {"app": NAME}},
            "spec": {"containers": [{"name": "app", "resources": resources}]},
        }

    def _scope(self, name: str) -> VPAScope:
        body = {"metadata": _meta(name), "spec": {"podSelector": {"matchLabels": self.meant.scopes[name]}}}
        return wire.convert(body, VPAScope)

    def _vpa(self, name: str) -> VerticalPodAutoscaler:
        spec: Json = {
            "targetRef": {"apiVersion": "apps/v1", "kind": self.world.start["kind"], "name": NAME},
            "updatePolicy": {"updateMode": self.meant.modes[name], "minReplicas": 1},
        }
        if self.meant.scopes[name]:
            spec["vpaScope"] = {"name": name}
        return wire.convert({"metadata": _meta(name), "spec": spec}, VerticalPodAutoscaler)

    # Roles.

    def _leader(self) -> SimulatedPod | None:
        return next((pod for pod in self.workload.pods if pod.labels.get(ROLE) == "leader"), None)

    def _is_able(self, pod: SimulatedPod) -> bool:
        return pod.name not in self.failing and self.workload.is_up(pod, self.life.now)

    def _set_role(self, pod: SimulatedPod, role: str) -> None:
        self.workload.label(pod, {ROLE: role or None}, self.life.now)
        if role not in ("", "follower"):
            self.judge.moved(self.now, pod.name)

    def _give_roles(self) -> None:
        """Let as many pods have each role as the world says. Those that have one keep it while they run."""
        left: dict[str, int] = dict(self.world.start["roles"])
        if not left:
            return
        if self.meant.is_in("nobody has the role"):
            left.pop("leader", None)
        free = []
        for pod in self.workload.pods:
            role = pod.labels.get(ROLE, "")
            if left.get(role, 0) > 0 and (role == "follower" or self._is_able(pod)):
                left[role] -= 1
            else:
                free.append(pod)
        for pod in free:
            role = next(
                (
                    role
                    for role, number in left.items()
                    if number > 0 and (role == "follower" or self._is_able(pod))
                ),
                "",
            )
            if role:
                left[role] -= 1
            if role != pod.labels.get(ROLE, ""):
                self._set_role(pod, role)

    def move_role(self, gap: float = 0.0) -> None:
        """Let the next pod that can lead, perhaps after a time without a leader."""
        pods, old = self.workload.pods, self._leader()
        place = pods.index(old) if old else -1
        able = [pod for pod in [*pods[place + 1 :], *pods[: max(place, 0)]] if self._is_able(pod)]
        if not able:
            return
        if old:
            self._set_role(old, "follower" if "follower" in self.world.start["roles"] else "")
        if not gap:
            self._set_role(able[0], "leader")
            self.look()
            return
        self.meant.begin("nobody has the role")

        def take(_: backtest.Life) -> None:
            self.meant.end("nobody has the role")
            if able[0] in self.workload.pods:
                self._set_role(able[0], "leader")
            self.look()

        self.life.after(gap, take)

    # What happens.

    def _happen(self, happening: Happening) -> Callable[[backtest.Life], object]:
        return lambda _: HAPPENS[happening.what](self, dict(happening.facts))

    def _for(self, seconds: float, trouble: str, end: Callable[[], object]) -> None:
        """Keep a trouble until its time is over, and a little longer, so that what waits for it can follow."""
        self.meant.begin(trouble)
        self.life.after(seconds, lambda _: end())
        self.life.after(seconds + AFTER, lambda _: self.meant.end(trouble))

    def _every(self, facts: Json, act: Callable[[], object]) -> None:
        for number in range(int(facts["for"] // facts["every"])):
            self.life.after(number * facts["every"], lambda _: act())

    def role_moves(self, facts: Json) -> None:
        self.move_role(facts["gap"])

    def role_moves_often(self, facts: Json) -> None:
        self._every(facts, self.move_role)

    def leader_killed(self, facts: Json) -> None:
        if (leader := self._leader()) and self._is_able(leader):
            self.life.kill(leader.name, "OOMKilled")
            self.life.after(facts["after"], lambda _: self.move_role())

    def leader_fails(self, facts: Json) -> None:
        if (leader := self._leader()) is None:
            return
        self.failing.add(leader.name)
        until = self.now + facts["for"]

        def crash(_: backtest.Life) -> None:
            pod = self.workload.pod(leader.name)
            if pod is None or self.now >= until:
                self.failing.discard(leader.name)
                return
            if self.workload.is_running(pod, self.life.now):
                self.life.kill(pod.name)
            self.life.after(
                max(pod.starts_at - self.life.now, 0.0) + min(15.0, self.world.start["starts"] * 0.9), crash
            )

        crash(self.life)
        self.life.after(15.0, lambda _: self.move_role())

    def nobody_leads(self, facts: Json) -> None:
        if leader := self._leader():
            self._set_role(leader, "follower" if "follower" in self.world.start["roles"] else "")
        self._for(facts["for"], "nobody has the role", lambda: None)

    def labels_written(self, facts: Json) -> None:
        def write() -> None:
            for pod in list(self.workload.pods):
                self.workload.label(pod, {"example.com/checked": f"{self.now:.0f}"}, self.life.now)

        self._every(facts, write)

    def node_down(self, facts: Json) -> None:
        node = next((pod.node for pod in reversed(self.workload.pods) if pod.node), "")
        if node:
            self.workload.set_node(node, self.life.now, is_ready=False)
            self.life.after(
                facts["for"], lambda _: self.workload.set_node(node, self.life.now, is_ready=True)
            )

    def nodes_full(self, facts: Json) -> None:
        for node in self.workload.nodes.values():
            held = [pod.size for pod in self.workload.pods if pod.node == node.name]
            node.taken = (
                node.cpu - sum(size.cpu for (size,) in held),
                node.memory - sum(size.memory for (size,) in held),
            )
        self.life.vpas_changed()

        def emptied() -> None:
            for node in self.workload.nodes.values():
                node.taken = (0, 0)
            self.life.vpas_changed()
            self.workload.settle(self.life.now)

        self._for(facts["for"], "the nodes are full", emptied)

    def _refuse(self, facts: Json, trouble: str, request: str, code: int) -> None:
        self.life.refusals[request] = Refusal(code, WORDS[code])
        self._for(facts["for"], trouble, lambda: self.life.refusals.pop(request, None))

    def resizes_refused(self, facts: Json) -> None:
        self._refuse(facts, "resizes are refused", "resize", facts["code"])

    def evictions_refused(self, facts: Json) -> None:
        self._refuse(facts, "evictions are refused", "evict", 429)

    def resizes_ignored(self, facts: Json) -> None:
        self.workload.behaviour.resizes = "ignored"

        def mended() -> None:
            self.workload.behaviour.resizes = "done"
            for pod in list(self.workload.pods):
                self.workload.resize(pod, pod.api.spec, self.life.now)

        self._for(facts["for"], "resizes are not taken up", mended)

    def metrics_missing(self, facts: Json) -> None:
        self.life.missing.add(facts["what"])
        self._for(facts["for"], "metrics are missing", lambda: self.life.missing.discard(facts["what"]))

    def _begin(self, program: str, **checkpoints: Any) -> None:
        """Start a program, unless another happening has."""
        if (self.life.updater if program == "updater" else self.life.recommender) is None:
            self.life.begin(program, **checkpoints)

    def recommender_restarts(self, facts: Json) -> None:
        how, begin = (
            facts["checkpoints"],
            {
                "fresh": {},
                "an hour old": {"age": 3600.0 + facts["away"]},
                "half": {"checkpoints": "half"},
                "missing": {"checkpoints": "none"},
            },
        )
        self.life.stop("recommender")
        self.judge.forget(since=self.now - AFTER if how == "fresh" else None, quiet=facts["away"])
        arguments: Json = begin[how]
        self._for(
            facts["away"],
            "the recommender restarts",
            lambda: self._begin("recommender", **arguments),
        )
        # Kept failures do not say it.
        if facts.get("blind"):
            self.metrics_missing({"what": "usage", "for": facts["away"] + facts["blind"]})

    def updater_restarts(self, facts: Json) -> None:
        self.life.stop("updater")
        self._for(facts["away"], "the updater restarts", lambda: self._begin("updater"))

    def webhook_away(self, facts: Json) -> None:
        self.life.stop("webhook")
        self._for(facts["for"], "the webhook is away", lambda: self.life.begin("webhook"))

    def scope_deleted(self, facts: Json) -> None:
        vpa, key = facts["vpa"], f"{HOME}/{facts['vpa']}"
        if key not in self.life.scopes:
            return
        self.life.delete_scope(key)
        self.meant.dark.add(vpa)

        def back() -> None:
            self.meant.dark.discard(vpa)
            self.life.set_scope(self._scope(vpa))

        self._for(facts["for"], "a scope is deleted", back)

    def scope_edited(self, facts: Json) -> None:
        vpa, before = facts["vpa"], self.meant.scopes[facts["vpa"]]

        def edit(labels: dict[str, str]) -> None:
            if facts["away"] and self.life.recommender:
                self.life.stop("recommender")
                self.life.after(facts["away"], lambda _: self._begin("recommender"))
            self.meant.scopes[vpa] = labels
            self.judge.forget(vpa, quiet=facts["away"])
            self.life.set_scope(self._scope(vpa))

        edit({ROLE: facts["to"]})
        self._for(facts["for"], "a scope is edited", lambda: edit(before))

    def vpa_made_again(self, facts: Json) -> None:
        vpa, key = facts["vpa"], f"{HOME}/{facts['vpa']}"
        if key not in self.life.vpas:
            return
        self.life.delete_vpa(key)
        self.meant.gone.add(vpa)

        def back() -> None:
            self.meant.gone.discard(vpa)
            self.judge.forget(vpa)
            self.life.set_vpa(self._vpa(vpa))

        self._for(facts["for"], "a VPA is made again", back)

    def mode_edited(self, facts: Json) -> None:
        vpa, before = facts["vpa"], self.meant.modes[facts["vpa"]]

        def edit(mode: str) -> None:
            self.meant.modes[vpa] = mode
            if f"{HOME}/{vpa}" in self.life.vpas:
                self.life.set_vpa(self._vpa(vpa))

        edit(facts["mode"])
        self._for(facts["for"], "a VPA's mode is edited", lambda: edit(before))

    def target_edited(self, facts: Json) -> None:
        asked = self.world.start["requests"]
        self.workload.roll_out(
            self._template({**asked, MEMORY: asked[MEMORY] * facts["factor"]}), self.life.now
        )
        self.life.vpas_changed()

    def pods_too_large(self, facts: Json) -> None:
        asked, nodes = self.world.start["requests"], self.world.start["nodes"]
        self.webhook_away(facts)
        self.workload.roll_out(
            self._template({**asked, MEMORY: nodes[MEMORY] * facts["factor"]}), self.life.now
        )
        self.life.vpas_changed()

    def rollout(self, _facts: Json) -> None:
        self.workload.roll_out(self.workload.template, self.life.now)

    def scaled(self, facts: Json) -> None:
        if self.world.start["kind"] == "DaemonSet":
            return

        def scale(replicas: int) -> None:
            self.judge.replicas = replicas
            self.life.scale(replicas)

        scale(facts["to"])
        self._for(facts["for"], "the workload is scaled", lambda: scale(self.world.start["pods"]))

    def bursts(self, facts: Json) -> None:
        self.demand.burst(self.now, facts["for"], facts["whom"], facts["factor"], (facts["resource"],))
        self.life.load_changed()

    def saturated(self, facts: Json) -> None:
        nodes = self.world.start["nodes"]
        share = nodes["cpu"] * nodes["count"] / max(len(self.workload.pods), 1)
        for role, profile in self.world.start["usage"].items():
            self.demand.burst(self.now, facts["for"], role, share * 1.005 / profile["cpu"], (CPU,))

    def slow_starts(self, facts: Json) -> None:
        behaviour, before = self.workload.behaviour, self.world.start["starts"]
        behaviour.start_seconds = facts["seconds"]

        def mended() -> None:
            behaviour.start_seconds = before

        self._for(facts["for"], "pods start slowly", mended)

    def pod_crashes(self, _facts: Json) -> None:
        if self.workload.pods:
            self.life.kill(self.workload.pods[0].name)


HAPPENS: Mapping[str, Callable[[_Stage, Json], None]] = {
    "the role moves": _Stage.role_moves,
    "the role moves often": _Stage.role_moves_often,
    "the leader is killed for memory": _Stage.leader_killed,
    "the leader fails": _Stage.leader_fails,
    "nobody has the role": _Stage.nobody_leads,
    "labels are written": _Stage.labels_written,
    "a node is down": _Stage.node_down,
    "the nodes are full": _Stage.nodes_full,
    "resizes are refused": _Stage.resizes_refused,
    "resizes are not taken up": _Stage.resizes_ignored,
    "evictions are refused": _Stage.evictions_refused,
    "metrics are missing": _Stage.metrics_missing,
    "the recommender restarts": _Stage.recommender_restarts,
    "the updater restarts": _Stage.updater_restarts,
    "the webhook is away": _Stage.webhook_away,
    "a scope is deleted": _Stage.scope_deleted,
    "a scope is edited": _Stage.scope_edited,
    "a VPA is made again": _Stage.vpa_made_again,
    "a VPA's mode is edited": _Stage.mode_edited,
    "the target is edited": _Stage.target_edited,
    "pods are made too large": _Stage.pods_too_large,
    "a rollout": _Stage.rollout,
    "the workload is scaled": _Stage.scaled,
    "use bursts": _Stage.bursts,
    "CPU is saturated": _Stage.saturated,
    "pods start slowly": _Stage.slow_starts,
    "a pod crashes": _Stage.pod_crashes,
}


def _meta(name: str) -> Json:
    return {"name": name, "namespace": HOME, "creationTimestamp": "2020-01-01T00:00:00Z"}


def _ranges(given: Mapping[str, Any]) -> tuple[LimitRange, ...]:
    if not given:
        return ()
    item = {"type": given["type"], "max": {MEMORY: f"{given['max']:.0f}"}}
    body = {"metadata": {"name": "range", "namespace": HOME}, "spec": {"limits": [item]}}
    return (wire.convert(body, LimitRange),)


def _bounds(vpa: VerticalPodAutoscaler) -> dict[str, Bounds]:
    recommended = vpa.status.recommendation
    if recommended is None or not recommended.container_recommendations:
        return {}
    entry = recommended.container_recommendations[0]
    lower, upper = entry.lower_bound, entry.upper_bound
    return {
        name: Bounds(lower[name].as_float(), amount.as_float(), upper[name].as_float())
        for name, amount in entry.target.items()
    }


def _quantities(amounts: Mapping[str, float]) -> dict[str, str]:
    return {CPU: str(Quantity.from_milli(round(amounts[CPU] * 1000))), MEMORY: f"{amounts[MEMORY]:.0f}"}
