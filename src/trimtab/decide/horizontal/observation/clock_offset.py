"""Decides whether our own clock is wrong, when samples of all metrics sources seem too old or too new.

A clock that is 2 minutes ahead of all others would otherwise reject every sample and stop all scaling.
"""

from collections.abc import Mapping

from trimtab.decide.horizontal.rules import HpaSettings

ROUNDED_TO = 10.0
"""Offsets are multiples of these seconds, so that delays of single responses change no decision."""


def find_clock_offset(server: float | None, sources: Mapping[str, float], settings: HpaSettings) -> float:
    """Return the seconds to add to our clock, or 0 if it seems right or the others disagree.

    `server` is by how much the API server's clock is ahead of ours, None if unknown. `sources` is the same for the
    newest sample of each metrics source. If a source is right by our clock, so is our clock, and a source that is not
    is off alone. Otherwise the API server and a source, or else 2 sources, must agree.
    """

    def agrees(newest: float, offset: float) -> bool:
        return -settings.stale_after <= newest - offset <= settings.ahead_limit

    if not sources or any(agrees(newest, 0.0) for newest in sources.values()):
        return 0.0
    if server is not None:
        is_supported = any(agrees(newest, server) for newest in sources.values())
        return _rounded(server) if is_supported else 0.0
    latest = max(sources.values())
    is_agreed = len(sources) > 1 and all(agrees(newest, latest) for newest in sources.values())
    return _rounded(latest) if is_agreed else 0.0


def describe_offset(offset: float) -> str:
    """Return how our clock is wrong and what follows, in one sentence."""
    direction = "behind" if offset > 0 else "ahead of"
    return (
        f"the clock of Trimtab is about {abs(offset):.0f} s {direction} the others': samples are dated by the clock of the "
        "API server and the metrics sources until it is right; set the clock of its node"
    )


def _rounded(seconds: float) -> float:
    return round(seconds / ROUNDED_TO) * ROUNDED_TO
