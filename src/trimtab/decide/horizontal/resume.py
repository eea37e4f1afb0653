"""Taking up a stored memory again after a restart or a change of leader.

Memory is stored together with the status, and the status is written only when it changes. So a stored memory may be
old while nothing happened: the workload was at its recommendation all the time, up to the last sign of life of
whoever decided then. Forgetting that would scale down too early; counting from now would scale down too late.

And the scale is written before the status: a crash in between leaves a change that the memory does not know. It is
counted as ours, because a rate policy must hold over all lives of the process.
"""

import msgspec

from trimtab.decide.horizontal.memory import LONGEST_WINDOW, Memory, add_event, remember, retimed


def resumed(memory: Memory, current: int, last_alive: float) -> Memory:
    """Return the memory as it was when the last decision was made, at about `last_alive`."""
    return caught_up(taken_over(memory, last_alive), current, last_alive)


def taken_over(memory: Memory, last_alive: float, skew: float = 0.0) -> Memory:
    """Return a stored memory by our clock, which is ahead of the clock that stored it by `skew` seconds.

    Moments after `last_alive` were stored by a clock that was ahead (fault F27); they count as `last_alive`.
    """
    return retimed(memory, lambda at: min(at + skew, last_alive))


def caught_up(memory: Memory, current: int, last_alive: float) -> Memory:
    """Return the memory with what must have happened up to `last_alive`, given the replicas there are."""
    memory = _with_good_values(_with_quiet_time(memory, current, last_alive), last_alive)
    return _with_lost_change(memory, current, last_alive)


def _with_quiet_time(memory: Memory, current: int, last_alive: float) -> Memory:
    """Extend the latest recommendation to `last_alive`, unless a scale-down was being held back.

    If the latest one was lower than the current replicas, its window runs on from the stored moments. If it was higher,
    growth was being held back: the current replicas were not recommended, and would begin that window again.
    """
    known = memory.recommendations
    if not known:
        return memory
    # Of two at one moment the later entry is the newer one.
    latest = max(reversed(known), key=lambda one: one.at)
    if latest.replicas < current or last_alive <= latest.at:
        return memory
    longer = remember(known, latest.replicas, last_alive, LONGEST_WINDOW)
    return msgspec.structs.replace(memory, recommendations=longer)


def _with_good_values(memory: Memory, last_alive: float) -> Memory:
    """Let the last good values reach to `last_alive`: a metric that was lost before would have changed the status."""
    if not memory.last_good:
        return memory
    longer = tuple(
        one if one.is_lost else msgspec.structs.replace(one, at=last_alive) for one in memory.last_good
    )
    return msgspec.structs.replace(memory, last_good=longer)


def _with_lost_change(memory: Memory, current: int, last_alive: float) -> Memory:
    """Count a size that no status tells of as ours: as a scale event, and as what was recommended then."""
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
