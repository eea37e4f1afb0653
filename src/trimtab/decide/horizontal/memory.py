"""What one HPA remembers between decisions: recommendations and scale events inside their windows, last values.

Memory is a value: a decision takes one and returns the next. What it is worth follows from its owner, its time and the current
size. It has two rules. `extend` repeats the last decision until a later time. `resume` says what a stored memory is worth to a
process that did not make it. It stays small, because a recommendation that a later one outweighs in every window can never matter
again (`remember`).
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from trimtab.model.core.meta import group_of
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json.wire import Wire

LONGEST_WINDOW = 3600.0
"""The longest stabilisation window that the API accepts, in seconds."""

LONGEST_PERIOD = 1800.0
"""The longest policy period that the API accepts, in seconds."""

MOST_SCALE_EVENTS = 128
"""Scale events kept per direction; beyond it the two oldest are merged, at the later time."""

QUIET_SECONDS = 90.0
"""A gap between two decisions that counts as a hand-over, in which the last decision was repeated."""


class Recommendation(Wire, kw_only=False, array_like=True):
    """How many replicas the metrics asked for, before stabilization."""

    replicas: int
    at: float


class ScaleEvent(Wire, kw_only=False, array_like=True):
    """A change of the scale, in replicas."""

    change: int
    at: float
    outdated: bool = False
    """Whether upstream will overwrite it."""
    is_found: bool = False
    """Whether it was found after a hand-over. It may be ours or a user's, so it limits and frees nothing."""


class LastGood(Wire, kw_only=False, array_like=True):
    """What a metric asked for when it was last read, if its loss policy needs that."""

    key: str
    replicas: int
    at: float
    is_lost: bool = False


class Owner(Wire, kw_only=False, array_like=True):
    """The HPA that a memory belongs to, and its target. With another one it starts afresh."""

    uid: str = ""
    group: str = ""
    kind: str = ""
    name: str = ""


NOBODY = Owner()


class Memory(Wire):
    """Everything that outlives one decision."""

    owner: Owner = NOBODY
    at: float = 0.0
    """When the last decision was made. It dates the stored values, too."""
    is_asking: bool = False
    """Whether the last decision recommended. While metrics are lost it does not."""
    recommendations: tuple[Recommendation, ...] | None = None
    """None until the first decision seeds it with the current replicas. A memory with an owner has at least one."""
    scale_up: tuple[ScaleEvent, ...] = ()
    scale_down: tuple[ScaleEvent, ...] = ()
    strategy: str = ""
    """The pod selection strategy of the last decision."""
    replicas: int | None = None
    """The replicas that the last decision left the target with."""
    last_good: tuple[LastGood, ...] = ()
    """At most one per metric of the spec."""
    last_event_times: dict[str, float] = msgspec.field(default_factory=dict)
    """When an event that would repeat every sync was last emitted, by reason."""
    policies: dict[str, Any] = msgspec.field(default_factory=dict)
    """What each replica policy remembers, by its name."""


EMPTY = Memory()

_Entry = TypeVar("_Entry", Recommendation, ScaleEvent, LastGood)


def owner_of(hpa: HorizontalPodAutoscaler) -> Owner:
    """Return who a memory of this HPA belongs to."""
    target = hpa.spec.scale_target_ref
    return Owner(hpa.metadata.uid, group_of(target.api_version), target.kind, target.name)


def start(owner: Owner, current: int, now: float, strategy: str = "") -> Memory:
    """Return upstream's start: the current replicas as the first recommendation, so that it never shrinks a workload."""
    return recommend(Memory(owner=owner, replicas=current, strategy=strategy), current, now)


def recommend(memory: Memory, replicas: int, now: float, longest: float = LONGEST_WINDOW) -> Memory:
    """Return the memory after a recommendation."""
    kept = remember(memory.recommendations or (), replicas, now, longest)
    return msgspec.structs.replace(memory, at=now, is_asking=True, recommendations=kept)


def extend(memory: Memory, to: float) -> Memory:
    """Return the memory of an HPA whose last decision was repeated until then."""
    known = memory.recommendations
    if to <= memory.at or not memory.is_asking or not known:
        return memory if to <= memory.at else msgspec.structs.replace(memory, at=to)
    last = Recommendation(known[-1].replicas, to)
    good = tuple(
        value if value.is_lost else msgspec.structs.replace(value, at=to) for value in memory.last_good
    )
    return msgspec.structs.replace(memory, at=to, recommendations=(*known[:-1], last), last_good=good)


def resume(stored: Memory, owner: Owner, current: int, now: float, quiet: float = QUIET_SECONDS) -> Memory:
    """Return what a stored memory is worth to a process that did not make it.

    In a gap longer than `quiet` nobody decided, and the current replicas count as recommended, as after upstream's start.
    """
    if stored.owner != owner or not stored.recommendations:
        strategy = stored.strategy if stored.owner.uid == owner.uid else ""
        return start(owner, current, now, strategy)
    memory = _clamped(stored, now)
    last = (memory.recommendations or ())[-1]
    # A last recommendation above the current size is not repeated: without `behavior` it would raise.
    if now - memory.at <= quiet and last.replicas <= current:
        memory = extend(memory, now)
    else:
        memory = recommend(memory, current, now)
    return found(memory, current, now)


def found(memory: Memory, current: int, now: float) -> Memory:
    """Recommend a size that the memory does not know. The change limits its own direction only."""
    before = memory.replicas
    if before is None or before == current:
        return msgspec.structs.replace(memory, replicas=current)
    memory = msgspec.structs.replace(recommend(memory, current, now), replicas=current)
    if current > before:
        event = add_event(memory.scale_up, current - before, now, is_found=True)
        return msgspec.structs.replace(memory, scale_up=event)
    event = add_event(memory.scale_down, before - current, now, is_found=True)
    return msgspec.structs.replace(memory, scale_down=event)


def _clamped(memory: Memory, now: float) -> Memory:
    """Return the memory without times later than now. What a clock that was ahead wrote is earlier by as much, all of it.

    An event that kept its time while the others were cut would count for longer, and free what it does not.
    """
    ahead = max(memory.at - now, 0.0)

    def clamp(entry: _Entry) -> _Entry:
        at = min(entry.at - ahead, now)
        return entry if at == entry.at else msgspec.structs.replace(entry, at=at)

    known = memory.recommendations
    return msgspec.structs.replace(
        memory,
        at=min(memory.at, now),
        recommendations=known and tuple(map(clamp, known)),
        scale_up=tuple(map(clamp, memory.scale_up)),
        scale_down=tuple(map(clamp, memory.scale_down)),
        last_good=tuple(map(clamp, memory.last_good)),
        last_event_times={reason: min(at, now) for reason, at in memory.last_event_times.items()},
    )


def seed_recommendations(memory: Memory, replicas: int, now: float) -> Memory:
    """Start the recommendations with the current replicas, as upstream does after its start."""
    if memory.recommendations is not None:
        return memory
    return msgspec.structs.replace(memory, recommendations=(Recommendation(replicas, now),))


def remember(
    kept: Iterable[Recommendation], replicas: int, now: float, longest: float
) -> tuple[Recommendation, ...]:
    """Add a recommendation and drop those that no window can need any more.

    Windows need the highest and the lowest of the latest recommendations. A recommendation with a later one at least as high
    and a later one at most as low is neither, whatever the window.
    """
    result = [Recommendation(replicas, now)]
    highest = lowest = replicas
    # Of two at the same time the later entry is the newer one, and stays behind the other.
    for earlier in sorted(kept, key=_time)[::-1]:
        if earlier.at < now - longest:
            break
        if earlier.replicas > highest or earlier.replicas < lowest:
            result.append(earlier)
            highest, lowest = max(highest, earlier.replicas), min(lowest, earlier.replicas)
    return tuple(reversed(result))


def overwrite_outdated(
    kept: tuple[Recommendation, ...], replicas: int, now: float, outdated_before: float
) -> tuple[Recommendation, ...]:
    """Add a recommendation as upstream does: over the last outdated one, or at the end."""
    old = [index for index, earlier in enumerate(kept) if earlier.at < outdated_before]
    new = Recommendation(replicas, now)
    return (*kept, new) if not old else (*kept[: old[-1]], new, *kept[old[-1] + 1 :])


def add_event(
    events: tuple[ScaleEvent, ...], change: int, now: float, *, is_found: bool = False
) -> tuple[ScaleEvent, ...]:
    """Add a scale event, and drop those that no policy period reaches any more."""
    recent = [event for event in events if event.at >= now - LONGEST_PERIOD]
    recent.append(ScaleEvent(change, now, is_found=is_found))
    while len(recent) > MOST_SCALE_EVENTS:
        first, second, *rest = recent
        merged = ScaleEvent(
            first.change + second.change, second.at, is_found=first.is_found or second.is_found
        )
        recent = [merged, *rest]
    return tuple(recent)


def overwrite_event(
    events: tuple[ScaleEvent, ...], change: int, now: float, longest_period: float
) -> tuple[ScaleEvent, ...]:
    """Add a scale event as upstream does: over the last outdated event, or at the end."""
    marked = [
        ScaleEvent(event.change, event.at, event.outdated or event.at < now - longest_period)
        for event in events
    ]
    old = [index for index, event in enumerate(marked) if event.outdated]
    if old:
        marked[old[-1]] = ScaleEvent(change, now)
    else:
        marked.append(ScaleEvent(change, now))
    return tuple(marked)


def dumps(memory: Memory) -> bytes:
    """Write the memory as JSON of about 20 bytes per entry."""
    return msgspec.json.encode(memory)


def loads(data: bytes | str) -> Memory:
    """Read what `dumps` wrote. What cannot be read is empty, so that the HPA starts afresh."""
    try:
        return msgspec.json.decode(data, type=Memory) if data else EMPTY
    except (msgspec.MsgspecError, ValueError):
        return EMPTY


def _time(recommendation: Recommendation) -> float:
    return recommendation.at
