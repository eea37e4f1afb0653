"""A life: one workload with its autoscalers in virtual time, from one happening to the next.

`Life` is the API server, the metrics API and the clock. It runs the production code of `production` when that is due, lets
happenings happen, and adds up what came of it in `outcomes`. The same life gives the same log.
"""

import heapq
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.library.simulator.load import Load
from trimtab.library.simulator.workload import NEVER, ContainerSize, SimulatedPod, Used, Workload
from trimtab.library.trace import RELATIVE_START
from trimtab.model.core.objects import LimitRange
from trimtab.model.core.pod import CPU, MEMORY, Pod
from trimtab.model.feature_gates import with_own_features
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.operator.settings.settings import Settings

if TYPE_CHECKING:
    from trimtab.decide.vertical.recommend.plugin_estimates import Estimators
    from trimtab.library.simulator.vpa_runs import Checkpoints, Recommender, Refusal, Sample, Updater, View

HOUR, MINUTE = 3600.0, 60.0
UPSTREAM_RULES = "vpa-1.8,kubernetes-1.37"
"""`--compat` with the rules of all upstream programs."""
Action = Callable[["Life"], object]


class Amounts(dict[str, float]):
    """Sums by resource or role, 0 for what is not there."""

    def __missing__(self, _: str) -> float:
        return 0.0


def settings_of(compat: str = "", **values: Any) -> Settings:
    """Return the settings of the programs: the defaults, or with `compat` those of upstream's rules."""
    gates = with_own_features(values.pop("feature_gates", ""))
    return Settings.of(**{"compat": compat, "feature_gates": gates, **values})


@dataclass(slots=True)
class Outcomes:
    """What came of a life. Hours of CPU are core-hours, those of memory byte-hours."""

    oom_kills: int = 0
    restarts: int = 0
    """Containers that were killed for memory or crashed."""
    resizes: int = 0
    """Resizes in place that the API server accepted."""
    evictions: int = 0
    refused: int = 0
    """Resizes and evictions that the API server refused."""
    status_writes: int = 0
    pod_writes: int = 0
    """Requests to annotate, resize or evict a pod."""
    replica_changes: int = 0
    reversals: int = 0
    """Changes of the replicas in the other direction than the last."""
    pod_hours: float = 0.0
    unavailable_pod_minutes: float = 0.0
    """Replicas that are not up, times minutes."""
    throttled_minutes: float = 0.0
    """Minutes of pods with a container above its CPU limit."""
    used: Amounts = field(default_factory=Amounts)
    """Resource-hours by resource."""
    wasted: Amounts = field(default_factory=Amounts)
    """Requested and not used."""
    starved: Amounts = field(default_factory=Amounts)
    """Used beyond the request."""
    requested: Amounts = field(default_factory=Amounts)
    starved_minutes: Amounts = field(default_factory=Amounts)
    """Minutes of pods that use more than they request, by role."""
    unsized_minutes: Amounts = field(default_factory=Amounts)
    """Minutes from the move of a role until its pod requests what it uses, by role."""

    @property
    def writes(self) -> int:
        return self.status_writes + self.pod_writes


RATES = ("pod_hours", "unavailable_pod_minutes", "throttled_minutes")
RATES_BY_NAME = ("used", "wasted", "starved", "requested", "starved_minutes")
"""The outcomes that add up while time passes."""


class Life:
    """A workload, its load and its autoscalers."""

    def __init__(  # noqa: PLR0913 - one parameter per part of the world, all but three of them by name
        self,
        workload: Workload,
        load: Load,
        settings: Settings | None = None,
        *,
        start: float = RELATIVE_START,
        vpas: Iterable[VerticalPodAutoscaler] = (),
        scopes: Iterable[VPAScope] = (),
        limit_ranges: tuple[LimitRange, ...] = (),
        metrics_period: float = 60.0,
        metrics_delay: float = 15.0,
        role_label: str = "role",
        estimators: "Estimators | None" = None,
    ) -> None:
        """Begin at `start`, a Unix time, which is also the `now` of the workload."""
        self.workload, self.load, self.settings = workload, load, settings or settings_of()
        self.start = self.now = start
        self.vpas: dict[str, VerticalPodAutoscaler] = {}
        self.scopes = {scope.metadata.key: scope for scope in scopes}
        self.limit_ranges = limit_ranges
        self.role_label = role_label
        self.metrics_delay = metrics_delay
        self._estimators = estimators or {}
        self.serves_webhook = True
        self.missing: set[str] = set()
        """What the metrics API lacks: `cpu`, `memory`, or `usage`, which is all."""
        self.refusals: dict[str, Refusal] = {}
        """What the API server says to requests to `resize` and to `evict`."""
        self.min_available: int | None = None
        """The pods that a PodDisruptionBudget keeps."""
        self.outcomes = Outcomes()
        self.log: list[tuple[float, str]] = []
        """What happened and what autoscalers did, in seconds since the start."""
        self.sizes: dict[str, list[tuple[float, tuple[ContainerSize, ...]]]] = {}
        """The sizes of each pod over time; an empty one when it is gone."""
        self.amounts: list[tuple[float, dict[str, float], dict[str, float]]] = []
        """Millicores and bytes that all pods use, and those that they request, at each change."""
        self.on_recommend: Callable[[list[VerticalPodAutoscaler]], object] = lambda _written: None
        """Called after each loop of the recommender with the VPAs of which it wrote the status."""
        self._queue: list[tuple[float, int, int, Callable[[], float]]] = []
        self._numbers = count()
        self._moving: dict[str, tuple[str, float]] = {}
        """Role and time of the last move, of pods that are not sized for it yet."""
        self._in_transit: list[tuple[float, list[Sample]]] = []
        self._samples: list[Sample] = []
        self._rates, self._accounted, self._counted_version = Outcomes(), start, -1
        """What adds up per second until something changes."""
        self._direction = 0
        self._saved: list[tuple[float, Checkpoints]] = []
        self._view: View | None = None
        self.recommender: Recommender | None = None
        self.updater: Updater | None = None
        self._updated, self._quiet_until, self._updater_seen = -NEVER, -NEVER, (-1, -1)
        self._vpa_version = 0
        self._metrics_period = metrics_period
        workload.on_change, workload.on_kill = self._on_pod, self._on_kill
        for pod in workload.pods:
            self._on_pod(None, pod.api)
        self.repeat(1, start, self._take_load)
        for vpa in vpas:
            self.set_vpa(vpa)

    # Scheduling.

    def at(self, seconds: float, action: Action) -> None:
        """Let something happen, `seconds` after the start."""
        self.repeat(0, self.start + seconds, lambda: (action(self), NEVER)[1])

    def after(self, seconds: float, action: Action) -> None:
        self.at(self.now - self.start + seconds, action)

    def repeat(self, order: int, at: float, work: Callable[[], float]) -> None:
        """Do some work at a Unix time, and again whenever it says. Of one moment, lower orders come first."""
        heapq.heappush(self._queue, (at, order, next(self._numbers), work))

    def run(self, seconds: float) -> "Life":
        """Live until `seconds` after the start."""
        end, queue, workload = self.start + seconds, self._queue, self.workload
        while True:
            at = queue[0][0] if queue else NEVER
            at = min(at, workload.next_due)
            if at > end:
                break
            self.now = at
            if workload.next_due <= at:
                workload.advance(at)
            else:
                _, order, _, work = heapq.heappop(queue)
                following = work()
                if following != NEVER:
                    self.repeat(order, following, work)
            if self._counted_version != workload.version:
                self._recount()
        self._account(end)
        self.now = end
        return self

    def note(self, text: str) -> None:
        self.log.append((self.now - self.start, text))

    # What a happening may do, besides what `workload` offers.

    def label(self, pod: str, **labels: str | None) -> None:
        """Set labels of a pod, or remove those that are None."""
        found = self.workload.pod(pod)
        if found is not None:
            self.workload.label(found, labels, self.now)

    def move_role(self, to: str, role: str = "leader", gap: float = 0.0) -> None:
        """Take a role from the pods that have it, and give it to another pod after `gap` seconds."""
        for pod in list(self.workload.pods):
            if pod.labels.get(self.role_label) == role and pod.name != to:
                self.label(pod.name, **{self.role_label: None})
        if gap:
            self.after(gap, lambda life: life.label(to, **{self.role_label: role}))
        else:
            self.label(to, **{self.role_label: role})

    def kill(self, pod: str, reason: str = "Error") -> None:
        """Kill the first container of a pod: `Error` for a crash, `OOMKilled` for memory."""
        found = self.workload.pod(pod)
        if found is not None:
            self.workload.kill(found, self.now, reason=reason)

    def load_changed(self) -> None:
        """Take the usage of all pods now, because it jumped."""
        self._counted_version = -1
        self._check_memory()

    def set_vpa(self, vpa: VerticalPodAutoscaler) -> None:
        """Create or edit a VPA. An edited one keeps its status."""
        old = self.vpas.get(vpa.key)
        meta = vpa.metadata
        generation = old.metadata.generation + 1 if old else 1
        created = meta.creation_timestamp or (old.metadata.creation_timestamp if old else None)
        metadata = msgspec.structs.replace(
            meta, generation=generation, creation_timestamp=created, uid=meta.uid or vpa.key
        )
        status = old.status if old else vpa.status
        new = msgspec.structs.replace(vpa, metadata=metadata, status=status)
        self.vpas[vpa.key] = new
        view = self._begin_vertical()
        view.vpa_cache.publish(old, new)
        self.vpas_changed()

    def delete_vpa(self, key: str) -> None:
        """Delete a VPA, by `namespace/name`. Its checkpoints stay until they are collected."""
        old = self.vpas.pop(key)
        self._begin_vertical().vpa_cache.publish(old, None)
        self.vpas_changed()

    def set_scope(self, scope: VPAScope) -> None:
        self.scopes[scope.metadata.key] = scope
        self.vpas_changed()

    def delete_scope(self, key: str) -> None:
        del self.scopes[key]
        self.vpas_changed()

    def vpas_changed(self) -> None:
        """Note that VPAs, scopes, nodes or the template changed."""
        self._vpa_version += 1
        if self._view is not None:
            self._view.changed()

    def scale(self, replicas: int, why: str = "") -> None:
        """Set the replicas, as an HPA or a user does."""
        before = self.workload.replicas
        if replicas == before:
            return
        self.outcomes.replica_changes += 1
        direction = 1 if replicas > before else -1
        self.outcomes.reversals += self._direction == -direction
        self._direction = direction
        self.note(f"scaled {before} -> {replicas}{': ' + why if why else ''}")
        self.workload.scale(replicas, self.now)

    def stop(self, program: str) -> None:
        """Stop the `recommender`, the `updater` or the `webhook`. A recommender that ends saves its checkpoints."""
        if program == "webhook":
            self.serves_webhook = False
        elif program == "updater":
            self.updater = None
        else:
            self.save_checkpoints()
            self.recommender = None

    def save_checkpoints(self) -> None:
        """Keep the checkpoints that the recommender would save now, for one that begins later."""
        if self.recommender is not None:
            self._saved.append((self.now, self.recommender.save()))

    def begin(self, program: str, *, checkpoints: str = "fresh", age: float = 0.0) -> None:
        """Start a stopped program. A recommender finds `fresh` checkpoints, those of `age` seconds ago, `half` of them or `none`."""
        if program == "webhook":
            self.serves_webhook = True
            return
        from trimtab.library.simulator import vpa_runs  # noqa: PLC0415 - it needs numpy

        view = self._begin_vertical()
        if program == "updater":
            self.updater, self._quiet_until = vpa_runs.Updater(view, self.settings), -NEVER
            return
        found = next((saved for at, saved in reversed(self._saved) if at <= self.now - age), ())
        kept = {"fresh": found, "half": found[::2], "none": ()}[checkpoints]
        self.recommender = vpa_runs.Recommender(view, self.settings, kept)

    # The API server and the metrics API.

    def refusal(self, request: str, pod: str) -> "Refusal | None":
        """Return why the API server refuses to `resize` or to `evict` a pod now."""
        from trimtab.library.simulator.vpa_runs import Refusal  # noqa: PLC0415 - it needs numpy

        found = self.refusals.get(request)
        if found is None and request == "evict" and self.min_available is not None:
            ready = self.workload.ready
            if len(ready) - any(other.name == pod for other in ready) < self.min_available:
                found = Refusal(429, "Cannot evict pod as it would violate the pod's disruption budget.")
        return found

    def did(self, what: str, pod: str) -> None:
        """Count a request of the updater: `annotate`, `resize`, `evict`, or one of the latter that was `refused`."""
        outcomes = self.outcomes
        outcomes.pod_writes += 1
        outcomes.resizes += what == "resize"
        outcomes.evictions += what == "evict"
        outcomes.refused += what == "refused"

    def samples(self) -> "list[Sample]":
        """Return the last usage that has arrived at the metrics API."""
        if "usage" in self.missing:
            return []
        while self._in_transit and self._in_transit[0][0] <= self.now:
            self._samples = self._in_transit.pop(0)[1]
        if not self.missing:
            return self._samples
        kept = tuple(resource for resource in (CPU, MEMORY) if resource not in self.missing)
        return [sample._replace(resources=kept) for sample in self._samples]

    def _measure(self) -> float:
        self._take_samples(self.now)
        return self.now + self._metrics_period

    def _take_samples(self, at: float) -> None:
        from trimtab.library.simulator.vpa_runs import Sample  # noqa: PLC0415 - it needs numpy

        measured = [
            Sample(pod.name, at, used)
            for pod in self.workload.pods
            if self.workload.is_running(pod, at) and (used := self.used_by(pod, at))
        ]
        self._in_transit.append((at + self.metrics_delay, measured))

    def used_by(self, pod: SimulatedPod, at: float) -> Used:
        """Return what a pod uses: of CPU at most its limit."""
        used = self.load.used(pod, at)
        limits = {size.name: size.cpu_limit for size in pod.size if size.cpu_limit}
        if not limits:
            return used
        return {
            name: (cpu if cpu is None else min(cpu, limits.get(name, cpu)), memory)
            for name, (cpu, memory) in used.items()
        }

    # The autoscalers.

    def _begin_vertical(self) -> "View":
        if self._view is None:
            from trimtab.library.simulator import vpa_runs  # noqa: PLC0415 - it needs numpy

            self._view = vpa_runs.View(self, self.settings, self._estimators)
            self.workload.admit = vpa_runs.admission(self._view)
            self.begin("recommender")
            self.begin("updater")
            self._take_samples(self.now - self.metrics_delay)  # the first loop has a measurement
            self.repeat(3, self.now - self.metrics_delay + self._metrics_period, self._measure)
            self.repeat(4, self.now, self._recommend)
            self.repeat(5, self.now, self._update)
        return self._view

    def _recommend(self) -> float:
        if self.recommender is None:
            return self.now + MINUTE
        written = []
        for vpa, status in self.recommender.step(self.samples()):
            old = self.vpas.get(vpa.key)
            if old is not None:
                new = self.vpas[vpa.key] = msgspec.structs.replace(old, status=status)
                self.outcomes.status_writes += 1
                written.append(new)
                self._begin_vertical().vpa_cache.publish(old, new)
                self.vpas_changed()
        self._wake_soon()
        self.on_recommend(written)
        return self.now + self.recommender.period

    def _update(self) -> float:
        updater = self.updater
        if updater is None:
            return self.now + MINUTE
        seen = (self.workload.version, self._vpa_version)
        if updater.woken or self._updater_seen != seen or self._quiet_until <= self.now:
            updater.run_step()
            self._updated = self.now
            self._updater_seen = (self.workload.version, self._vpa_version)
            is_idle = self._updater_seen == seen
            self._quiet_until = updater.quiet_until() if is_idle else self.now
        return self.now + updater.min_pause + max(updater.seconds_to_next(self.now), 0.0)

    def _wake(self) -> float:
        """Let the updater step early, some seconds after a role moved or room was made."""
        if self.updater is not None and self.updater.woken:
            entry = next(entry for entry in self._queue if entry[3] == self._update)
            self._queue.remove(entry)
            heapq.heapify(self._queue)
            self.repeat(5, self._update(), self._update)
        return NEVER

    def _wake_soon(self) -> None:
        updater = self.updater
        if updater is not None and updater.woken:
            at = max(self.now, self._updated + updater.min_pause) + updater.settle_pause
            self.repeat(5, at, self._wake)

    def unchanged(self) -> dict[str, str]:
        """Return why the updater left pods as they are, of those that request less than they use, by pod."""
        found = {}
        for pod in self.workload.pods:
            used = self.used_by(pod, self.now)
            sizes = {size.name: (size.cpu, size.memory) for size in pod.size}
            is_starved = any(
                (amount or 0) > request
                for name, amounts in used.items()
                for amount, request in zip(amounts, sizes.get(name, (0, 0)), strict=True)
            )
            verdict = self.updater.verdict(pod.api.metadata.key) if self.updater is not None else None
            if is_starved and verdict is not None and verdict.action == "none":
                found[pod.name] = verdict.reason
        return found

    # What happens to pods, and what came of it.

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self._note_move(old, new)
        if self._view is None:
            return
        if old is None or new is None:
            self._view.changed()
        self._view.pod_cache.publish(old, new)
        self._wake_soon()

    def _note_move(self, old: Pod | None, new: Pod) -> None:
        role = new.metadata.labels.get(self.role_label, "")
        before = old.metadata.labels.get(self.role_label, "") if old is not None else ""
        if role != before:
            self._end_move(new.metadata.name)
            self.note(f"{new.metadata.name} is {role or 'without a role'}")
            if role:
                self._moving[new.metadata.name] = role, self.now

    def _end_move(self, pod: str) -> None:
        role, since = self._moving.pop(pod, ("", 0.0))
        if role:
            self.outcomes.unsized_minutes[role] += (self.now - since) / MINUTE

    def _on_kill(self, pod: SimulatedPod, reason: str) -> None:
        self.outcomes.restarts += 1
        self.outcomes.oom_kills += reason == "OOMKilled"
        self.note(f"{pod.name} is killed: {reason}")

    def _take_load(self) -> float:
        for pod in list(self.workload.pods):
            wanted = self.load.labels(pod, self.now)
            if any(pod.labels.get(key) != value for key, value in wanted.items()):
                self.workload.label(pod, wanted, self.now)
        self._check_memory()
        self._counted_version = -1
        return self.load.next_change(self.now)

    def _check_memory(self) -> None:
        if self.workload.nodes or any(size.memory_limit for pod in self.workload.pods for size in pod.size):
            running = [pod for pod in self.workload.pods if self.workload.is_running(pod, self.now)]
            self.workload.check_memory({pod.name: self.load.used(pod, self.now) for pod in running}, self.now)

    def _account(self, until: float) -> None:
        """Add up what did not change since the last time."""
        seconds = until - self._accounted
        if seconds <= 0:
            return
        self._accounted, outcomes, rates = until, self.outcomes, self._rates
        for name in RATES:
            setattr(outcomes, name, getattr(outcomes, name) + getattr(rates, name) * seconds)
        for name in RATES_BY_NAME:
            sums: Amounts = getattr(outcomes, name)
            for key, rate in getattr(rates, name).items():
                sums[key] += rate * seconds

    def _recount(self) -> None:
        """Count anew what adds up per second. Pods that use and request the same are counted together."""
        self._account(self.now)
        now, workload, rates = self.now, self.workload, Outcomes()
        groups: dict[tuple[Hashable, tuple[ContainerSize, ...], str, bool, bool], list[SimulatedPod]] = {}
        for pod in workload.pods:
            role = pod.labels.get(self.role_label, "")
            up_now, runs_now = workload.is_up(pod, now), workload.is_running(pod, now)
            groups.setdefault((self.load.key(pod), pod.size, role, runs_now, up_now), []).append(pod)
            self._note_size(pod)
        used, requested, starved = ({CPU: 0.0, MEMORY: 0.0} for _ in range(3))
        unavailable = workload.replicas
        for (_, size, role, is_running, is_up), pods in groups.items():
            number = len(pods)
            unavailable -= number * is_up
            amounts = self.load.used(pods[0], now) if is_running else {}
            is_starved = is_throttled = False
            for container in size:
                wanted, memory = (amount or 0 for amount in amounts.get(container.name, (0, 0)))
                cpu = min(wanted, container.cpu_limit) if container.cpu_limit else wanted
                is_throttled |= 0 < container.cpu_limit < wanted
                for resource, amount, request in (
                    (CPU, cpu, container.cpu),
                    (MEMORY, memory, container.memory),
                ):
                    used[resource] += amount * number
                    requested[resource] += request * number
                    starved[resource] += max(amount - request, 0) * number
                    is_starved |= amount > request
            rates.throttled_minutes += number * is_throttled / MINUTE
            if is_starved:
                rates.starved_minutes[role] += number / MINUTE
            elif role and is_running:
                for pod in pods:
                    self._end_move(pod.name)
        rates.pod_hours = len(workload.pods) / HOUR
        rates.unavailable_pod_minutes = max(unavailable, 0) / MINUTE
        for resource, unit in (CPU, 1000 * HOUR), (MEMORY, HOUR):
            rates.used[resource] = used[resource] / unit
            rates.requested[resource] = requested[resource] / unit
            rates.starved[resource] = starved[resource] / unit
            rates.wasted[resource] = (requested[resource] - used[resource] + starved[resource]) / unit
        self._rates, self._counted_version = rates, workload.version
        if not self.amounts or self.amounts[-1][1:] != (used, requested):
            self.amounts.append((now, used, requested))

    def _note_size(self, pod: SimulatedPod) -> None:
        steps = self.sizes.setdefault(pod.name, [])
        if not steps or steps[-1][1] != pod.size:
            steps.append((self.now, pod.size))
