"""What is remembered of one HPA: the memory that the object carries, and our own in the epoch in which we decide.

The stored memory is kept always, as the newest version of the object has it. Our own is worth something only in the
epoch it was made in. Whoever decides in a new epoch begins with the stored one, as of the last holder's renewal.
"""

from dataclasses import dataclass

import msgspec

from trimtab.cluster.leases.epoch import SET_SECONDS, Epoch
from trimtab.decide.horizontal import Memory
from trimtab.decide.horizontal import memory as memories
from trimtab.decide.horizontal.memory import (
    EMPTY,
    caught_up,
    restore_memory,
    retimed,
    taken_over,
)


@dataclass(slots=True, eq=False)
class HpaMemory:
    """The stored and our own memory of one HPA."""

    stored: str = ""
    """As the newest version of the object carries it."""
    own: Memory = EMPTY
    """What the next decision in `epoch` starts from."""
    epoch: Epoch | None = None
    """The epoch that `own` belongs to; None before the first decision, and when `own` must not be used again."""
    is_confirmed: bool = False
    """Whether the server showed us the object in `epoch`: a watch may not have got to the last holder's last write."""
    must_store: bool = False
    """Whether `own` has to be stored although no status changed: what is stored was dated by another clock.

    The other clock is that of the last holder, or our own before it was set.
    """
    _is_untried: bool = True
    """Whether no decision in `epoch` was carried out yet."""
    _reaches_to: float | None = None
    """How far `own` reaches while it does not know the replicas yet; None when it does."""
    _clock_offset: float | None = None
    """By how much the wall clock was ahead of the monotonic one when `own` was last used."""

    def begin(self, epoch: Epoch, current: int | None, now: float, monotonic: float) -> bool:
        """Make `own` the memory of an epoch and of the current replicas; return whether it changed.

        `now` is the moment of the decision: nothing that is remembered may lie after it, by a microsecond either.
        """
        is_new = self.epoch is not epoch
        if is_new:
            stored = loads(self.stored)
            skew = epoch.skew(stored.clock, now, monotonic)
            self._reaches_to = epoch.last_alive(now, monotonic)
            dated = taken_over(stored, self._reaches_to, skew)
            self.own = msgspec.structs.replace(dated, clock=epoch.own_clock(now, monotonic))
            self.epoch, self.is_confirmed, self._clock_offset = epoch, not epoch.is_elected, None
            self._is_untried = True
            # Whoever takes over from us knows our clock, and perhaps no clock of those before us.
            self.must_store = skew != 0.0 or (self.own.clock != stored.clock and _has_moments(self.own))
        if self._reaches_to is None or current is None:
            return is_new
        self.own = caught_up(self.own, current, self._reaches_to)
        self._reaches_to = None
        return True

    def take_stored(self, stored: str) -> bool:
        """Take in what the object carries now; return whether that is not what was last known to be stored.

        `kubectl replace` drops the annotation of a native HPA. Then `own` has to be stored again.
        """
        is_new = stored != self.stored
        self.stored, self.must_store = stored, self.must_store or is_new
        return is_new

    def contradicts(self, epoch: Epoch, current: int) -> bool:
        """Return whether an epoch would begin with replicas that are not those the last leader left behind."""
        return self.epoch is not epoch and loads(self.stored).replicas not in (None, current)

    def keep(self, memory: Memory) -> None:
        """Keep what a decision left behind once it was carried out."""
        self.own, self._is_untried = memory, False

    def preview(self, current: int | None, now: float) -> Memory:
        """Return the memory that whoever decides now would start from, for those who only show it."""
        stored = loads(self.stored)
        return stored if current is None else restore_memory(stored, current, now)

    def doubt(self, memory: Memory, at: float) -> None:
        """Keep a memory whose scale may have been written at that moment: the next look at the replicas tells."""
        self.keep(memory)
        self._reaches_to = at

    def start_over(self) -> None:
        """Begin the epoch again with the stored memory, unless a decision in it was carried out already."""
        if self._is_untried:
            self.epoch = None

    def follow_wall_clock(self, now: float, monotonic: float) -> bool:
        """Move `own` along when the wall clock was set, so that no window moves (fault F27); return whether it was."""
        offset = now - monotonic
        jump = 0.0 if self._clock_offset is None else offset - self._clock_offset
        self._clock_offset = offset
        if abs(jump) <= SET_SECONDS:
            return False
        own = retimed(self.own, lambda at: at + jump)
        clock = self.own.clock if self.epoch is None else self.epoch.own_clock(now, monotonic)
        self.own = msgspec.structs.replace(own, clock=clock)
        self.must_store = True
        return True


def _has_moments(memory: Memory) -> bool:
    """Return whether a window or a rate may depend on a moment: not so while one recommendation is all there is."""
    return len(memory.recommendations or ()) > 1 or bool(memory.scale_up or memory.scale_down)


def loads(text: str) -> Memory:
    """Return a stored memory; one that cannot be read is lost, not fatal."""
    if not text:
        return EMPTY
    try:
        return memories.loads(text)
    except (msgspec.MsgspecError, ValueError):
        return EMPTY
