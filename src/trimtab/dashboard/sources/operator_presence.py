"""Whether the operators in other processes still run, as the renewals of their Leases show."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from trimtab.clock import Clock
from trimtab.dashboard.pages.views import Notice
from trimtab.model.core.objects import Lease
from trimtab.model.times import format_time
from trimtab.operator.settings.published import FoundSettings

RELEASED_SECONDS: Final = 5.0
"""How long a Lease may be without a holder. Another replica takes it within some seconds."""
_SHORTEST_SECONDS: Final = 15.0
_WITHOUT: Final = {
    "horizontal": "no HPA is acted on",
    "recommender": "no recommendation changes",
    "updater": "no pod is resized or evicted",
}
"""What a loop that does not run leaves undone."""


@dataclass(frozen=True, slots=True)
class _Renewal:
    """A renewal of a Lease, and since when no later one was seen."""

    lease: Lease
    since: float
    is_first: bool

    @property
    def at(self) -> datetime:
        return self.lease.spec.renew_time or datetime.fromtimestamp(0, UTC)

    def is_last(self, now: datetime, monotonic: float) -> bool:
        """Return whether a running operator would have renewed the Lease since.

        The operator's clock may differ from ours, so its time counts only until a second renewal was seen.
        """
        spec = self.lease.spec
        duration = max(spec.lease_duration_seconds, _SHORTEST_SECONDS)
        patience = 2 * duration if spec.holder_identity else RELEASED_SECONDS
        age = (now - self.at).total_seconds() if self.is_first else 0.0
        return max(monotonic - self.since, age) >= patience


class OperatorPresence:
    """Keeps the last renewal of each loop's Lease."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._renewals: dict[str, _Renewal] = {}

    def observe(self, loop: str, found: FoundSettings) -> None:
        """Take what was read of a loop's Lease. A cluster that does not answer says nothing about the operator."""
        known, lease, now = self._renewals.get(loop), found.lease, self._clock.monotonic()
        if known is not None and found.is_unanswered:
            self._renewals[loop] = _Renewal(known.lease, now, is_first=False)
        elif lease is not None and (known is None or known.lease.spec != lease.spec):
            self._renewals[loop] = _Renewal(lease, now, is_first=known is None)

    def notices(self) -> tuple[Notice, ...]:
        """Return a sentence for each operator that does not run any more."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        gone: dict[str, list[str]] = {}
        renewals: dict[str, _Renewal] = {}
        for loop, renewal in self._renewals.items():
            if renewal.is_last(now, monotonic):
                gone.setdefault(renewal.lease.metadata.key, []).append(loop)
                renewals[renewal.lease.metadata.key] = renewal
        return tuple(
            Notice(text=_sentence(loops, renewals[name]), is_problem=True) for name, loops in gone.items()
        )


def _sentence(loops: Iterable[str], renewal: _Renewal) -> str:
    undone = " and ".join(_WITHOUT[loop] for loop in loops)
    return (
        f"The operator does not run: it last renewed its Lease {renewal.lease.metadata.key} at "
        f"{format_time(renewal.at)}. Until it is back, {undone}. What you see is decided here and not carried out."
    )
