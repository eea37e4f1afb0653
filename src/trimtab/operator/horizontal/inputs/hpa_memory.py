"""The memory of one HPA: the copy that the object stores, and the copy of this replica.

The stored copy is always as the newest version of the object has it. `own` is valid in the epoch in which it was made. The
first decision of an epoch starts from what the stored copy is worth. Under the rules of Kubernetes nothing is stored.
"""

from dataclasses import dataclass

from trimtab.cluster.leases.fence import Epoch
from trimtab.decide.horizontal import memory as memories
from trimtab.decide.horizontal.memory import EMPTY, Memory, Owner


@dataclass(slots=True, eq=False)
class HpaMemory:
    """The stored memory and the own memory of one HPA."""

    own: Memory = EMPTY
    """The memory that the next decision in `epoch` starts from."""
    epoch: Epoch | None = None
    """The epoch of `own`. None before the first decision and when `own` must not be used again."""
    is_confirmed: bool = False
    """Whether the object was read in `epoch`. The watch may lack the last write of the last holder."""
    is_first_write: bool = True
    """Whether the stored memory is the first of `epoch`, which all HPAs write in one sync."""
    _is_untried: bool = True
    """Whether no decision of `epoch` was kept."""
    _is_in_doubt: bool = False
    """Whether the last scale may or may not have been written."""
    _text: str = ""
    _stored: Memory | None = EMPTY
    """What `_text` says, once it was parsed."""

    def load(self, epoch: Epoch, owner: Owner, replicas: int | None, quiet: float) -> bool:
        """Load `own` for an epoch and the current replicas, and return whether it changed."""
        now = epoch.now()
        if self.epoch is not epoch:
            stored = self.read_stored()
            self.is_confirmed, self.is_first_write, self._is_untried = not epoch.follows, True, True
            # An HPA whose target was edited starts afresh in its decision, which sees the old owner.
            if replicas is None or (stored.owner != owner and stored.owner.uid == owner.uid):
                self.own, self.epoch = stored, None if replicas is None else epoch
            else:
                self.own, self.epoch = memories.resume(stored, owner, replicas, now, quiet), epoch
            return True
        if self._is_in_doubt and replicas is not None:
            self.own, self._is_in_doubt = memories.found(self.own, replicas, now), False
            return True
        return False

    def start_over(self, epoch: Epoch) -> bool:
        """Start an epoch without memory, as upstream does, and return whether it is new."""
        if self.epoch is epoch:
            return False
        self.own, self.epoch, self.is_confirmed, self._is_untried = EMPTY, epoch, not epoch.follows, True
        return True

    @property
    def is_first_decision(self) -> bool:
        """Return whether no decision of the epoch was kept yet."""
        return self._is_untried

    def reload(self) -> None:
        """Start the epoch again from the stored memory, unless a decision in it was already written."""
        if self._is_untried:
            self.epoch = None

    def contradicts(self, epoch: Epoch, replicas: int) -> bool:
        """Return whether a new epoch would start with other replicas than the last leader left."""
        return self.epoch is not epoch and self.read_stored().replicas not in (None, replicas)

    def read_stored(self) -> Memory:
        """Return the memory that the newest version of the object carries."""
        if self._stored is None:
            self._stored = memories.loads(self._text)
        return self._stored

    def set_stored(self, text: str) -> bool:
        """Replace the stored memory with what an event, a write or a read shows. Return whether it differs.

        `kubectl replace` drops the annotation of a native HPA. Then the next decision stores it again.
        """
        if text == self._text:
            return False
        self._text, self._stored = text, None
        return True

    def mark_confirmed(self) -> None:
        """Note that the object was read in this epoch."""
        self.is_confirmed = True

    def mark_written(self, memory: Memory, text: str) -> None:
        """Note that a memory was written with this text."""
        self.is_first_write, self.is_confirmed = self._is_untried, True
        if text and self._text == text:
            self._stored = memory  # shares its parts with `own`

    def preview(self, now: float) -> Memory:
        """Return the memory that the living operator has now, as far as its last status shows."""
        return memories.extend(self.read_stored(), now)

    def keep(self, memory: Memory) -> None:
        """Keep the memory of a decision that was written."""
        self.own, self._is_untried = memory, False

    def keep_in_doubt(self, memory: Memory) -> None:
        """Keep the memory of a decision whose scale may have been written.

        The next read of the replicas shows whether it was.
        """
        self.keep(memory)
        self._is_in_doubt = True
