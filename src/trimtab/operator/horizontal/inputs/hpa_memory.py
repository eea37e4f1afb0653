"""The memory of one HPA: the copy that the object stores, and the copy of this replica.

`stored` is always as the newest version of the object has it. `own` is valid in the epoch in which it was made. The
first decision of an epoch starts from `stored`, as of the time when the last holder renewed its lease.
"""

from dataclasses import dataclass

import msgspec

from trimtab.cluster.leases.epoch import SET_SECONDS, Epoch
from trimtab.decide.horizontal import memory as memories
from trimtab.decide.horizontal.memory import (
    EMPTY,
    Memory,
    catch_up_memory,
    restore_memory,
    shift_times,
    take_over_memory,
)


@dataclass(slots=True, eq=False)
class HpaMemory:
    """The stored memory and the own memory of one HPA."""

    stored: str = ""
    """The memory that the newest version of the object carries."""
    own: Memory = EMPTY
    """The memory that the next decision in `epoch` starts from."""
    epoch: Epoch | None = None
    """The epoch of `own`. None before the first decision and when `own` must not be used again."""
    is_confirmed: bool = False
    """Whether the object was read in `epoch`. The watch may lack the last write of the last holder."""
    must_store: bool = False
    """Whether `own` has to be stored even if the status did not change, because another clock dated `stored`.

    That clock is the last holder's, or our own before it was set.
    """
    _is_untried: bool = True
    """Whether no decision in `epoch` was written yet."""
    _reaches_to: float | None = None
    """The time up to which `own` is complete, until the current replicas are read. None afterwards."""
    _clock_offset: float | None = None
    """The wall clock minus the monotonic clock when `own` was last used."""

    def load(self, epoch: Epoch, replicas: int | None, now: float, monotonic: float) -> bool:
        """Load `own` for an epoch and the current replicas, and return whether it changed.

        `now` is the time of the decision. No remembered time may be later, not even by a microsecond.
        """
        is_new = self.epoch is not epoch
        if is_new:
            stored = loads(self.stored)
            skew = epoch.skew(stored.clock, now, monotonic)
            self._reaches_to = epoch.last_alive(now, monotonic)
            dated = take_over_memory(stored, self._reaches_to, skew)
            self.own = msgspec.structs.replace(dated, clock=epoch.own_clock(now, monotonic))
            self.epoch, self.is_confirmed, self._clock_offset = epoch, not epoch.is_elected, None
            self._is_untried = True
            # The next holder can convert from our clock, and perhaps not from the clocks before ours.
            self.must_store = skew != 0.0 or (self.own.clock != stored.clock and _has_times(self.own))
        if self._reaches_to is None or replicas is None:
            return is_new
        self.own = catch_up_memory(self.own, replicas, self._reaches_to)
        self._reaches_to = None
        return True

    def reload(self) -> None:
        """Start the epoch again from `stored`, unless a decision in it was already written."""
        if self._is_untried:
            self.epoch = None

    def contradicts(self, epoch: Epoch, replicas: int) -> bool:
        """Return whether a new epoch would start with other replicas than the last leader left."""
        return self.epoch is not epoch and loads(self.stored).replicas not in (None, replicas)

    def update_stored(self, stored: str) -> bool:
        """Replace `stored` with what a watch event carries, and return whether it differs.

        `kubectl replace` drops the annotation of a native HPA. Then `own` has to be stored again.
        """
        is_new = stored != self.stored
        self.stored, self.must_store = stored, self.must_store or is_new
        return is_new

    def read_stored(self) -> Memory:
        """Return the memory that a replica would take over now."""
        return loads(self.stored)

    def set_stored(self, stored: str) -> None:
        """Replace `stored` with what our own write or read returned."""
        self.stored = stored

    def mark_confirmed(self) -> None:
        """Note that the object was read in this epoch."""
        self.is_confirmed = True

    def mark_stored(self) -> None:
        """Note that `own` was stored, or that a dry run would have stored it."""
        self.must_store = False

    def keep(self, memory: Memory) -> None:
        """Keep the memory of a decision that was written."""
        self.own, self._is_untried = memory, False

    def keep_in_doubt(self, memory: Memory, at: float) -> None:
        """Keep the memory of a decision whose scale may have been written at that time.

        The next read of the replicas shows whether it was.
        """
        self.keep(memory)
        self._reaches_to = at

    def preview(self, replicas: int | None, now: float) -> Memory:
        """Return the memory that a decision would start from now, for dry runs."""
        stored = loads(self.stored)
        return stored if replicas is None else restore_memory(stored, replicas, now)

    def adjust_for_clock_jump(self, now: float, monotonic: float) -> bool:
        """Move the times in `own` if the wall clock was set, and return whether it was (fault F27)."""
        offset = now - monotonic
        jump = 0.0 if self._clock_offset is None else offset - self._clock_offset
        self._clock_offset = offset
        if abs(jump) <= SET_SECONDS:
            return False
        own = shift_times(self.own, lambda at: at + jump)
        clock = self.own.clock if self.epoch is None else self.epoch.own_clock(now, monotonic)
        self.own = msgspec.structs.replace(own, clock=clock)
        self.must_store = True
        return True


def _has_times(memory: Memory) -> bool:
    """Return whether a window or a rate limit may depend on a time in the memory.

    That is not so while it has one recommendation and no scale event.
    """
    return len(memory.recommendations or ()) > 1 or bool(memory.scale_up or memory.scale_down)


def loads(text: str) -> Memory:
    """Parse a stored memory, or return an empty one if it cannot be parsed."""
    if not text:
        return EMPTY
    try:
        return memories.loads(text)
    except (msgspec.MsgspecError, ValueError):
        return EMPTY
