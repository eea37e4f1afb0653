"""What came of a sized workload: sums for comparing, and the promises that hold whatever upstream does.

A player looks at pods and recommendations once a minute, and at each move of a role. The judge knows what pods used, what
metrics were served and what pods asked for. It does not know how a size is found.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.worlds.world import Life

MEMORY, CPU = "memory", "cpu"
UNITS = {CPU: ("core-hours", 1.0), MEMORY: ("GiB-hours", 2.0**30)}
SOON = 300.0
"""Seconds in which a pod gets the size of its role, and in which a recommendation follows a sample."""
LONG = 5400.0
"""Seconds in which a pod gets its size where its kubelet takes up no resize. An hour of them is for the kubelet."""
SLACK = 0.9
"""Recommendations are made of buckets 5 % wide: how far below a peak one may be."""
MARGIN = 1.15 * 1.06 * 1.1
"""How far above the greatest need a recommendation may be: margin, bucket, and a tenth."""
KILL_RATIO, KILL_BYTES = 1.2, 100 * 2.0**20
"""A kill counts as a need of this much more, at least."""
AT_ONCE = 1
"""Ready pods of a workload that evictions may keep down: by the default of --max-missing-pods, and by any budget here."""
ROOMY = 64.0
"""Cores of a node that has room for every size."""
LEAST = 250 * 2.0**20
"""The least memory that is recommended for a pod."""


@dataclass(frozen=True)
class Bounds:
    """One resource of a recommendation: cores or bytes."""

    lower: float
    target: float
    upper: float


Advice = Mapping[str, Mapping[str, Bounds]]
"""What each VPA recommends for the pods' one container, by VPA and resource."""


@dataclass(frozen=True)
class Seen:
    """One pod at one moment. Amounts are cores and bytes, by resource."""

    name: str
    uid: str
    role: str
    vpa: str
    """The VPA that should size it, by its labels and the scopes that the world knows, or nothing."""
    requests: Mapping[str, float]
    limits: Mapping[str, float]
    needs: Mapping[str, float]
    """What it uses, or would use if no limit cut it. Empty while it does not run."""
    is_ready: bool
    learners: tuple[str, ...] = ()
    """The VPAs that may learn what it needs: its own, and stronger ones that are Off."""
    is_promised: bool = True
    """Whether its size can be had now: its VPA may act, the node has room, nothing is refused, the programs run."""
    served: frozenset[str] = frozenset()
    """Resources of which the metrics API has a sample of it."""
    is_placed: bool = True
    """Whether it has a node."""


@dataclass
class Meant:
    """What the world means, whatever the programs make of it: who is whose, and what can be had now."""

    start: Mapping[str, Any]
    scopes: dict[str, dict[str, str]] = field(default_factory=dict)
    """The labels that each VPA's scope selects."""
    modes: dict[str, str] = field(default_factory=dict)
    dark: set[str] = field(default_factory=set)
    """VPAs whose scopes cannot be read."""
    gone: set[str] = field(default_factory=set)
    """VPAs that do not exist now."""
    troubles: dict[str, int] = field(default_factory=dict)
    """What keeps sizes from being had: happenings, and how many of them."""

    def __post_init__(self) -> None:
        self.scopes = {vpa["name"]: dict(vpa["scope"]) for vpa in self.start["vpas"]}
        self.modes = {vpa["name"]: vpa["mode"] for vpa in self.start["vpas"]}

    def begin(self, trouble: str) -> None:
        self.troubles[trouble] = self.troubles.get(trouble, 0) + 1

    def end(self, trouble: str) -> None:
        self.troubles[trouble] -= 1

    def is_in(self, trouble: str) -> bool:
        return self.troubles.get(trouble, 0) > 0

    def matching(self, labels: Mapping[str, str]) -> list[str]:
        """Return the VPAs that match a pod, the one that should size it first: the most specific that acts."""
        found = [
            name
            for name, scope in self.scopes.items()
            if scope.items() <= labels.items() and name not in self.gone
        ]
        return sorted(found, key=lambda name: (self.modes[name] == "Off", -len(self.scopes[name])))

    def vpa_of(self, labels: Mapping[str, str]) -> str:
        """Return the VPA that should size a pod, or nothing."""
        return next(iter(self.matching(labels)), "")

    def promises(self, vpa: str) -> bool:
        """Return whether a pod of this VPA can have its size now, in place."""
        has_room = not self.start["range"] and self.start["nodes"]["cpu"] >= ROOMY
        return (
            has_room
            and self.modes.get(vpa) in ("InPlaceOrRecreate", "InPlace")
            and not any(self.troubles.values())
        )

    def may_evict(self, vpa: str) -> bool:
        """Return whether nothing keeps a pod of this VPA from being evicted, and its size is not a role's."""
        others = sum(self.troubles.values()) - self.troubles.get("resizes are not taken up", 0)
        return self.modes.get(vpa) == "InPlaceOrRecreate" and not self.scopes[vpa] and not others

    def uniform(self) -> frozenset[str]:
        """Return the VPAs whose pods all use alike, or that have one pod at a time."""
        roles = set(self.start["usage"]) - {""}
        scoped = {name for name, scope in self.scopes.items() if scope}
        return frozenset(self.scopes if roles <= scoped else scoped)


class _Peak(NamedTuple):
    """Memory that was measured, when first and when last."""

    first: float
    last: float
    held: float


@dataclass
class _Known:
    """What metrics have said about the pods of one VPA."""

    peaks: deque[_Peak] = field(default_factory=deque)
    """What all pods used at once within the last one and a half days. What is less than a later one is dropped."""
    served: set[str] = field(default_factory=set)
    most: float = 0.0
    """The greatest need of memory ever, kills included."""
    recommended: set[str] = field(default_factory=set)
    quiet_until: float = 0.0
    """Until when what is recommended may be from before an edit."""


@dataclass
class Judge:
    """The books of one life."""

    life: Life
    meant: Meant
    replicas: int = field(init=False)
    _at: float = 0.0
    _before: Mapping[str, Seen] = field(default_factory=dict)
    _known: dict[str, _Known] = field(default_factory=dict)
    _moved: dict[str, float] = field(default_factory=dict)
    """Seconds that each pod waits for the size of a new role, while it could have it."""

    _waited: dict[str, float] = field(default_factory=dict)
    """By uid, seconds that a pod has waited for an eviction that brings its size."""
    _kills: dict[str, tuple[float, Seen]] = field(default_factory=dict)
    """By name, when each pod was killed for memory while its VPA could act, and what it was."""
    _ready: frozenset[str] = frozenset()
    _down: list[frozenset[str]] = field(default_factory=list)
    """Which pods were Ready before each eviction of a Ready one, until another is."""
    _sized_since: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By uid, the VPA of each pod and since when."""

    def __post_init__(self) -> None:
        self.warm = max(profile["warm"] for profile in self.meant.start["usage"].values())
        self.replicas = self.meant.start["pods"]
        self.single, self.day = self.meant.uniform(), self.meant.start["day"]

    def look(self, at: float, pods: Sequence[Seen], advice: Advice) -> None:
        """Account for the time since the last look."""
        minutes = (at - self._at) / 60
        for pod in pods:
            self._account(pod, minutes, advice.get(pod.vpa, {}))
        ready = sum(pod.is_ready for pod in pods)
        needed = min(self.replicas, 1) if self.meant.start["active"] else self.replicas
        self.life.add("unavailable pod-minutes", max(needed - ready, 0) * minutes)
        self.see_ready(pod.uid for pod in pods if pod.is_ready)
        if len(pods) > self.replicas:
            self._down.clear()  # A rollout takes pods down, too.
        self._learn(at, pods)
        self._check_changes(at, pods)
        self._check_roles(at, pods, advice, minutes)
        self._check_kills(at, pods)
        self._check_evictions(pods, advice, minutes)
        self._check_advice(at, advice)
        self._at, self._before = at, {pod.name: pod for pod in pods}

    def _account(self, pod: Seen, minutes: float, wanted: Mapping[str, Bounds]) -> None:
        life, is_starved = self.life, False
        for resource, needed in pod.needs.items():
            (unit, size), asked = UNITS[resource], pod.requests.get(resource, 0.0)
            amount = abs(needed - asked) / size * minutes / 60
            life.add(f"{'starved' if needed > asked else 'wasted'} {unit}", amount)
            is_starved |= needed > asked * 1.05
        life.add("starved minutes", minutes * is_starved)
        limit = pod.limits.get(CPU)
        life.add("throttled minutes", minutes * (limit is not None and pod.needs.get(CPU, 0.0) > limit))
        life.add("pod-hours", minutes / 60)
        is_outside = any(
            not bounds.lower * 0.99 <= pod.requests.get(resource, 0.0) <= bounds.upper * 1.01
            for resource, bounds in wanted.items()
        )
        life.add("minutes outside the recommendation", minutes * is_outside)

    def moved(self, at: float, pod: str) -> None:
        """A role moved to a pod."""
        self._moved[pod] = 0.0

    def killed(self, at: float, pod: Seen, held: float) -> None:
        """A container was killed with this much memory."""
        self.life.add("OOM kills")
        self.life.note(at, f"{pod.name} is killed for memory at {_bytes(held)}")
        known = self._known.setdefault(pod.vpa, _Known())
        known.most = max(known.most, held * KILL_RATIO, held + KILL_BYTES)
        known.served.add(MEMORY)
        self._kills[pod.name] = (at, pod)

    def see_ready(self, uids: Iterable[str]) -> None:
        """See which pods are Ready, in a look or right before an eviction."""
        ready = self._ready = frozenset(uids)
        is_whole = len(ready) >= self.replicas
        self._down = [] if is_whole else [before for before in self._down if ready <= before]

    def evicted(self, at: float, name: str) -> None:
        """A pod was evicted by an autoscaler. Its role is on no template, so what comes back has none."""
        pod = self._before.get(name)
        self.life.note(at, f"{name} ({pod.role or 'no role' if pod else 'new'}) is evicted")
        if pod and self.meant.scopes.get(pod.vpa):
            text = f"{name} is evicted as {pod.role}, and what replaces it has no role"
            self._break("no eviction that does not give the pod what its role needs", text)
        if pod and pod.is_ready:
            self._down.append(self._ready)
            if len(self._down) > AT_ONCE:
                text = f"{name} is evicted, and {len(self._down)} of {self.replicas} are down by evictions"
                self._break("no more pods are down by the updater than the budget allows", text)

    def forget(self, vpa: str | None = None, since: float | None = None, quiet: float = 0.0) -> None:
        """Let what is known of a VPA's pods, or of all, be lost, or what came after a moment. Judge nothing for a while."""
        self._kills.clear()
        for name in [vpa] if vpa else list(self._known):
            known = self._known.setdefault(name, _Known())
            known.peaks = deque(peak for peak in known.peaks if since is not None and peak.last < since)
            known.quiet_until = max(known.quiet_until, self._at + quiet + SOON)
            if vpa is not None:
                # What is recommended is stored in the VPA. A start without history keeps it until there is a sample.
                known.recommended.clear()
                known.most = 0.0

    def _learn(self, at: float, pods: Sequence[Seen]) -> None:
        by_vpa: dict[str, list[Seen]] = {}
        for pod in pods:
            held = min(pod.needs.get(MEMORY, 0.0), pod.limits.get(MEMORY, float("inf")))
            for vpa in pod.learners:
                known = self._known.setdefault(vpa, _Known())
                known.most = max(known.most, held)
                known.served |= pod.served
            by_vpa.setdefault(pod.vpa, []).append(pod)
            before = self._sized_since.get(pod.uid)
            if before is None or before[0] != pod.vpa:
                self._sized_since[pod.uid] = (pod.vpa, at if self._at else -self.warm)
        for vpa, holders in by_vpa.items():
            known = self._known.setdefault(vpa, _Known())
            if all(
                MEMORY in pod.served and pod.needs and at - self._sized_since[pod.uid][1] >= self.warm
                for pod in holders
            ):
                # What each of them uses is known of all of them. What is left of a former role is not meant.
                held = min(min(pod.needs[MEMORY], pod.limits.get(MEMORY, float("inf"))) for pod in holders)
                first = at
                while known.peaks and known.peaks[-1].held <= held:
                    lower = known.peaks.pop()
                    first = lower.first if lower.held >= held * 0.95 else first
                known.peaks.append(_Peak(first, at, held))
        for known in self._known.values():
            while known.peaks and known.peaks[0].last < at - 1.5 * self.day:
                known.peaks.popleft()

    def _check_changes(self, at: float, pods: Sequence[Seen]) -> None:
        for pod in pods:
            before = self._before.get(pod.name)
            if before is None or before.uid != pod.uid or before.requests == pod.requests:
                continue
            change = f"{pod.name} ({pod.role or 'no role'}) from {_amounts(before.requests)} to {_amounts(pod.requests)}"
            self.life.note(at, f"resized: {change}")
            self.life.add("resizes")
            if pod.vpa in self.meant.dark and before.vpa == pod.vpa:
                self._break(
                    "what cannot be read changes no running pod",
                    f"{change} while the scope of {pod.vpa} cannot be read",
                )
            asked, was, used = (
                found.get(MEMORY, 0.0) for found in (pod.requests, before.requests, pod.needs)
            )
            known = self._peak(pod.vpa, until=at - SOON * 2)
            if pod.vpa in self.single and asked < was and asked < used * SLACK <= known:
                text = f"{change}, uses {_bytes(used)}, and {_bytes(known)} was measured of {pod.vpa}"
                self._break("nothing shrinks below what it uses while what it needs is known", text)

    def _check_roles(self, at: float, pods: Sequence[Seen], advice: Advice, minutes: float) -> None:
        names = {pod.name: pod for pod in pods}
        for name, waited in list(self._moved.items()):
            pod = names.get(name)
            if pod is None or not pod.role:
                del self._moved[name]
                continue
            wanted = advice.get(pod.vpa, {})
            small = [
                resource
                for resource, bounds in wanted.items()
                if pod.requests.get(resource, 0.0)
                < min(bounds.lower, pod.needs.get(resource, bounds.lower)) * 0.99
            ]
            if not small:
                del self._moved[name]
                continue
            self.life.add("minutes from a role's move to its size", minutes)
            self._moved[name] = waited + minutes * 60 * pod.is_promised
            if self._moved[name] > SOON:
                asks = ", ".join(
                    f"{pod.requests.get(resource, 0.0):.4g} of {resource}, lower bound {wanted[resource].lower:.4g}"
                    for resource in small
                )
                self._break(
                    "a pod has the size of its role within minutes",
                    f"{name} has been {pod.role} for {waited / 60:.0f} minutes and asks for {asks}",
                )

    def _check_kills(self, at: float, pods: Sequence[Seen]) -> None:
        """Check that what was killed for memory asks for more from its next start or resize on."""
        for pod in pods:
            killed, before = self._kills.get(pod.name, (at, pod))
            is_same = (pod.uid, pod.requests) == (before.uid, before.requests)
            if at - killed < SOON or (is_same and before.is_promised and pod.is_promised):
                continue
            del self._kills[pod.name]
            asked, was = (found.requests.get(MEMORY, 0.0) for found in (pod, before))
            if before.is_promised and pod.is_promised and pod.vpa == before.vpa and asked <= was:
                text = f"{pod.name} was killed with {_bytes(was)}, and asks for {_bytes(asked)} now"
                self._break("a container killed for memory asks for more", text)

    def _check_evictions(self, pods: Sequence[Seen], advice: Advice, minutes: float) -> None:
        """Check that a plain VPA evicts pods that nothing else can bring to their size."""
        room = self.meant.start["nodes"]
        for pod in pods:
            wanted = advice.get(pod.vpa, {})
            is_outside = any(
                not bounds.lower * 0.9 <= pod.requests.get(resource, 0.0) <= bounds.upper * 1.1
                for resource, bounds in wanted.items()
            )
            has_room = all(bounds.target < room[resource] / len(pods) for resource, bounds in wanted.items())
            if not is_outside or not has_room or not self.meant.may_evict(pod.vpa):
                self._waited.pop(pod.uid, None)
                continue
            waited = self._waited[pod.uid] = self._waited.get(pod.uid, 0.0) + minutes * 60
            asks = f"{pod.name} asks for {_amounts(pod.requests)}"
            if not pod.is_placed and waited > SOON * 2:
                text = f"{asks}, for which no node has room; its recommendation fits"
                self._break("a pod that fits nowhere gets its recommended size", text)
            if pod.is_placed and self.meant.is_in("resizes are not taken up") and waited > LONG:
                text = f"{asks} and has been outside its recommendation for {waited / 60:.0f} minutes"
                self._break("a resize that no kubelet takes up becomes an eviction", text)

    def _check_advice(self, at: float, advice: Advice) -> None:
        for vpa, known in self._known.items():
            wanted = advice.get(vpa, {})
            if at < known.quiet_until:
                continue
            for resource, bounds in wanted.items():
                if resource not in known.served:
                    text = f"{vpa} recommends {bounds.target:.4g} of {resource}, of which there never was a sample"
                    self._break("no size from nothing", text)
            if MEMORY in known.recommended and MEMORY not in wanted and vpa in advice:
                self._break("a role's profile outlives its holders", f"{vpa} recommends no memory any more")
            if MEMORY not in wanted:
                continue
            target = wanted[MEMORY].target
            known.recommended.add(MEMORY)
            if target > max(known.most, LEAST) * MARGIN and known.most:
                text = (
                    f"{vpa} recommends {_bytes(target)}; its pods never needed more than {_bytes(known.most)}"
                )
                self._break("a role does not learn what another role needs", text)
            peak = self._peak(vpa, until=at - SOON)
            if vpa in self.single and target < peak * SLACK:
                text = f"{vpa} recommends {_bytes(target)}; {_bytes(peak)} was measured within the last day and a half"
                self._break("a role's profile outlives its holders", text)

    def _peak(self, vpa: str, until: float) -> float:
        """Return the greatest memory that was measured of a VPA's pods, up to a moment."""
        known = self._known.get(vpa)
        return next((peak.held for peak in known.peaks if peak.first <= until), 0.0) if known else 0.0

    def _break(self, promise: str, text: str) -> None:
        if not any(line.startswith(f"{promise}: ") for line in self.life.broken):
            self.life.broken.append(f"{promise}: {text}")
            self.life.note(self._at, f"BROKEN {promise}: {text}")


def _bytes(amount: float) -> str:
    return f"{amount / 1e9:.2f} GB"


def _amounts(amounts: Mapping[str, Any]) -> str:
    cores, memory = (float(amounts.get(name, 0.0)) for name in (CPU, MEMORY))
    return f"{cores:.3g} cores and {_bytes(memory)}"
