"""What one HPA remembers between decisions: recommendations and scale events inside their windows, last values.

Memory is a value: a decision takes one and returns the next. It stays small, because a recommendation that a later
one outweighs in every window can never matter again (`remember`), and it can be lost: `recalled` rebuilds what the
status and the `SuccessfulRescale` events still show.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from trimtab.model.json.wire import Wire

LONGEST_WINDOW = 3600.0
"""The longest stabilisation window that the API accepts, in seconds."""

LONGEST_PERIOD = 1800.0
"""The longest policy period that the API accepts, in seconds."""

MOST_SCALE_EVENTS = 128
"""Scale events kept per direction; beyond it the two oldest are merged, at the later time."""


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


class LastGood(Wire, kw_only=False, array_like=True):
    """What a metric asked for when it was last read, if its loss policy needs that."""

    key: str
    replicas: int
    at: float
    is_lost: bool = False


class Memory(Wire):
    """Everything that outlives one decision."""

    uid: str = ""
    """The HPA that it belongs to; an HPA that was created again starts afresh."""
    clock: str = ""
    """The name of the clock that its times are from, where several replicas take turns."""
    recommendations: tuple[Recommendation, ...] | None = None
    """None until the first decision seeds it with the current replicas."""
    scale_up: tuple[ScaleEvent, ...] = ()
    scale_down: tuple[ScaleEvent, ...] = ()
    strategy: str = ""
    """The pod selection strategy of the last decision."""
    replicas: int | None = None
    """The replicas that the last decision left the target with."""
    last_good: tuple[LastGood, ...] = ()
    """At most one per metric of the spec."""
    rejected_since: dict[str, float] = msgspec.field(default_factory=dict)
    """When samples of a metric were first rejected, by the metric's key, while they still are."""
    last_event_times: dict[str, float] = msgspec.field(default_factory=dict)
    """When an event that would repeat every sync was last emitted, by reason."""
    policies: dict[str, Any] = msgspec.field(default_factory=dict)
    """What each replica policy remembers, by its name."""


EMPTY = Memory()

_Entry = TypeVar("_Entry", Recommendation, ScaleEvent, LastGood)


def seed_recommendations(memory: Memory, replicas: int, now: float) -> Memory:
    """Start the recommendations with the current replicas, so that a restart never shrinks a workload."""
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


def add_event(events: tuple[ScaleEvent, ...], change: int, now: float) -> tuple[ScaleEvent, ...]:
    """Add a scale event, and drop those that no policy period reaches any more."""
    recent = [event for event in events if event.at >= now - LONGEST_PERIOD]
    recent.append(ScaleEvent(change, now))
    while len(recent) > MOST_SCALE_EVENTS:
        first, second, *rest = recent
        recent = [ScaleEvent(first.change + second.change, second.at), *rest]
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


def shift_times(memory: Memory, new_time: Callable[[float], float]) -> Memory:
    """Return the memory with every time passed through `new_time`, for when the clock was set."""
    known = memory.recommendations

    def shift(entry: _Entry) -> _Entry:
        return msgspec.structs.replace(entry, at=new_time(entry.at))

    return msgspec.structs.replace(
        memory,
        recommendations=known and tuple(map(shift, known)),
        scale_up=tuple(map(shift, memory.scale_up)),
        scale_down=tuple(map(shift, memory.scale_down)),
        last_good=tuple(map(shift, memory.last_good)),
        rejected_since={key: new_time(at) for key, at in memory.rejected_since.items()},
        last_event_times={reason: new_time(at) for reason, at in memory.last_event_times.items()},
    )


def dumps(memory: Memory) -> bytes:
    """Write the memory as JSON of about 20 bytes per entry."""
    return msgspec.json.encode(memory)


def loads(data: bytes | str) -> Memory:
    """Read what `dumps` wrote, also in format 1, which HPAs may still carry."""
    memory = msgspec.json.decode(data, type=Memory)
    old = msgspec.json.decode(data, type=_Format1)
    if old.told or old.refused:
        return msgspec.structs.replace(memory, last_event_times=old.told, rejected_since=old.refused)
    return memory


class _Format1(Wire):
    """The fields of a memory that had other names in format 1."""

    told: dict[str, float] = msgspec.field(default_factory=dict)
    refused: dict[str, float] = msgspec.field(default_factory=dict)


def _time(recommendation: Recommendation) -> float:
    return recommendation.at


def is_restored_alike(stored: Memory, newest: Memory, current: int, timeless: int) -> bool:
    """Return whether a replica that takes over now would decide the same from both memories.

    The latest recommendation may have an earlier time in `stored` if `catch_up_memory` extends it, or if it asks for
    at most `timeless` replicas. Good values may be earlier, because they are extended too.
    """
    return (
        stored.uid == newest.uid
        and stored.strategy == newest.strategy
        and stored.replicas == newest.replicas
        and stored.scale_up == newest.scale_up
        and stored.scale_down == newest.scale_down
        and stored.rejected_since == newest.rejected_since
        and stored.last_event_times == newest.last_event_times
        and _good_values(stored) == _good_values(newest)
        and _have_alike_recommendations(stored, newest, current, timeless)
    )


def _have_alike_recommendations(stored: Memory, newest: Memory, current: int, timeless: int) -> bool:
    before, after = stored.recommendations, newest.recommendations
    if before == after:
        return True
    if not before or not after or before[:-1] != after[:-1]:
        return False
    old, new = before[-1], after[-1]
    return old.replicas == new.replicas and old.at <= new.at and not timeless < new.replicas < current


def _good_values(memory: Memory) -> list[tuple[str, int, bool, float]]:
    return [
        (good.key, good.replicas, good.is_lost, good.at if good.is_lost else 0.0) for good in memory.last_good
    ]


def restore_memory(memory: Memory, current: int, last_alive: float) -> Memory:
    """Return a stored memory as of the last decision, at about `last_alive`."""
    return catch_up_memory(take_over_memory(memory, last_alive), current, last_alive)


def take_over_memory(memory: Memory, last_alive: float, skew: float = 0.0) -> Memory:
    """Return a stored memory by our clock, which is `skew` seconds ahead of the clock that stored it.

    Times after `last_alive` are from a clock that was ahead, and count as `last_alive`.
    """
    return shift_times(memory, lambda at: min(at + skew, last_alive))


def catch_up_memory(memory: Memory, current: int, last_alive: float) -> Memory:
    """Return the memory with what must have happened up to `last_alive`, given the current replicas."""
    memory = _with_good_values(_with_quiet_time(memory, current, last_alive), last_alive)
    return _with_lost_change(memory, current, last_alive)


def _with_quiet_time(memory: Memory, current: int, last_alive: float) -> Memory:
    """Extend the latest recommendation to `last_alive`, unless a scale-down was being held back.

    If the latest recommendation was lower than the current replicas, its window runs on from the stored times. If it was higher,
    growth was being held back; the current replicas were not recommended, and would start that window again.
    """
    known = memory.recommendations
    if not known:
        return memory
    # Of two at the same time the later entry is the newer one.
    latest = max(reversed(known), key=_time)
    if latest.replicas < current or last_alive <= latest.at:
        return memory
    longer = remember(known, latest.replicas, last_alive, LONGEST_WINDOW)
    return msgspec.structs.replace(memory, recommendations=longer)


def _with_good_values(memory: Memory, last_alive: float) -> Memory:
    # A metric that was lost before `last_alive` would have changed the status.
    if not memory.last_good:
        return memory
    longer = tuple(
        good if good.is_lost else msgspec.structs.replace(good, at=last_alive) for good in memory.last_good
    )
    return msgspec.structs.replace(memory, last_good=longer)


def _with_lost_change(memory: Memory, current: int, last_alive: float) -> Memory:
    """Count a size that the memory does not have as a scale event and a recommendation."""
    before = memory.replicas
    if before is None or before == current:
        return memory
    known = memory.recommendations
    recommended = known and remember(known, current, last_alive, LONGEST_WINDOW)
    memory = msgspec.structs.replace(memory, recommendations=recommended, replicas=current)
    if current > before:
        return msgspec.structs.replace(
            memory, scale_up=add_event(memory.scale_up, current - before, last_alive)
        )
    return msgspec.structs.replace(
        memory, scale_down=add_event(memory.scale_down, before - current, last_alive)
    )
