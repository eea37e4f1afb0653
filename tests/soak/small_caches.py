"""Makes caches with a bound small, so that they are full soon and do not look like leaks."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest import mock

from trimtab.cluster import access_reviews, events
from trimtab.cluster.events import EventLimits
from trimtab.dashboard.auth import sessions
from trimtab.dashboard.sources import history
from trimtab.dashboard.web import overview
from trimtab.operator.pods.interning import InternTable


@contextmanager
def small_caches() -> Iterator[None]:
    """Make the caches of this process small."""
    with (
        mock.patch.dict(InternTable.__init__.__kwdefaults__ or {}, most=64),
        mock.patch.object(access_reviews, "_MAX_ENTRIES", 8),
        mock.patch.object(events, "EventLimits", partial(EventLimits, remembered=8)),
        mock.patch.object(overview, "_MAX_REMOVED", 8),
        mock.patch.object(sessions, "MAX_SESSIONS", 4),
        mock.patch.object(history, "MAX_PER_HPA", history.MIN_PER_HPA),
    ):
        yield
