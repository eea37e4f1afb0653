"""One HPA's turn in a sync: from the first look to the last write, always in one pair of hands."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.operator.horizontal.inputs.hpa_cache import HpaState


@dataclass(slots=True, eq=False)
class Turn:
    """The turn of one HPA; while it lasts no other sync takes the HPA up.

    The work that holds a turn ends it, however that work ends. Handing it on makes another piece of work its holder.
    """

    autoscaler: "HpaState"
    started: float
    """When it began, on the monotonic clock."""
    holder: object
    tries: int = 0
    """How often it was decided anew because something had changed meanwhile."""

    def end(self) -> None:
        """Let the next sync take the HPA up again."""
        if self.autoscaler.turn is self:
            self.autoscaler.turn = None


def begin_turn(autoscaler: "HpaState", started: float, holder: object) -> Turn:
    """Begin the turn of an HPA that has none."""
    turn = autoscaler.turn = Turn(autoscaler, started, holder)
    return turn
