"""Stabilization: recent recommendations hold a decision back.

Without `behavior` the highest recommendation of the downscale window counts. With it each direction has its own
window: the lowest of the up-window bounds growth, the highest of the down-window bounds shrinking.
"""

from collections.abc import Sequence

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.memory import LONGEST_WINDOW, Recommendation, overwrite_outdated, remember
from trimtab.model.json.wire import Wire
from trimtab.model.readable import counted
from trimtab.model.times import format_time

SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
SCALE_UP_STABILIZED = "ScaleUpStabilized"

MESSAGES = {
    SCALE_DOWN_STABILIZED: "recent recommendations were higher than current one, "
    "applying the highest recent recommendation",
    SCALE_UP_STABILIZED: "recent recommendations were lower than current one, applying the lowest recent recommendation",
}


GRACE_SECONDS = 0.5
"""How much shorter a window or a period of ours is. One that is a whole number of syncs ends at that sync, not one later."""


class Stabilized(Wire):
    """The result of the stabilization windows."""

    replicas: int
    reason: str = ""
    """Why it differs from the recommendation; empty when it does not."""
    recommendations: tuple[Recommendation, ...] = ()
    """What to remember, the new recommendation included."""
    window: float = 0.0
    """The window that held it back, in seconds."""

    @property
    def earlier(self) -> Recommendation | None:
        """Return the latest recommendation of the replicas that the windows allow, if they held."""
        same = [known for known in self.recommendations if known.replicas == self.replicas]
        return max(same, key=lambda known: known.at, default=None) if self.reason else None


def earlier_recommendation(stabilized: Stabilized) -> str:
    """Return which earlier recommendation is carried out although the metrics ask for less now."""
    earlier = stabilized.earlier
    at = "" if earlier is None else f" at {format_time(wire_time(earlier.at))}"
    were = "was" if stabilized.replicas == 1 else "were"
    number = counted(stabilized.replicas, "replica")
    return f"{number} {were} recommended{at}, within the window of {stabilized.window:g} s"


def stabilize(
    recommendations: tuple[Recommendation, ...], desired: int, now: float, window: float, *, compact: bool
) -> Stabilized:
    """Take the highest recommendation of the window. Upstream includes its very edge."""
    cutoff = now - window + (GRACE_SECONDS if compact else 0.0)
    highest = desired
    for known in recommendations:
        if known.replicas > highest and known.at >= cutoff:
            highest = known.replicas
    if compact:
        kept = remember(recommendations, desired, now, max(window, LONGEST_WINDOW))
    else:
        kept = overwrite_outdated(recommendations, desired, now, cutoff)
    held = highest != desired
    return Stabilized(
        replicas=highest,
        reason=SCALE_DOWN_STABILIZED if held else "",
        recommendations=kept,
        window=window if held else 0.0,
    )


class Windows(Wire):
    """The stabilization windows of both directions, in seconds."""

    up: float = 0.0
    down: float = 300.0


def stabilize_both_ways(
    recommendations: Sequence[Recommendation],
    current: int,
    desired: int,
    now: float,
    windows: Windows,
    grace: float = 0.0,
) -> tuple[int, str, float]:
    """Return the replicas that both windows allow, with the reason and the window if one of them held.

    Here a recommendation exactly as old as its window no longer counts, as upstream has it.
    """
    up_cutoff, down_cutoff = now - windows.up + grace, now - windows.down + grace
    lowest = highest = desired
    for known in recommendations:
        if known.replicas < lowest and known.at > up_cutoff:
            lowest = known.replicas
        elif known.replicas > highest and known.at > down_cutoff:
            highest = known.replicas
    allowed = min(max(current, lowest), highest)
    if allowed == desired:
        return allowed, "", 0.0
    if desired >= current:
        return allowed, SCALE_UP_STABILIZED, windows.up
    return allowed, SCALE_DOWN_STABILIZED, windows.down
