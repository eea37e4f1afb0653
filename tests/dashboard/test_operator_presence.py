"""When the page says that the operator of another process does not run any more."""

from datetime import UTC, datetime, timedelta

import pytest

from trimtab.clock import VirtualClock
from trimtab.dashboard.sources.operator_presence import OperatorPresence
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.objects import Lease, LeaseSpec
from trimtab.operator.settings.published import FoundSettings
from trimtab.operator.settings.settings import Settings

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
UNANSWERED = FoundSettings(Settings(), "here", is_unanswered=True)
NO_LEASE = FoundSettings(Settings(), "here")


def renewed(at, *, holder="the-operator", name="trimtab-horizontal"):
    """Return what is read of a Lease that was renewed so many seconds after noon, by the operator's clock."""
    spec = LeaseSpec(
        holder_identity=holder, lease_duration_seconds=15, renew_time=NOON + timedelta(seconds=at)
    )
    lease = Lease(metadata=ObjectMeta(name=name, namespace="trimtab"), spec=spec)
    return FoundSettings(Settings(), "here", is_published=True, lease=lease)


def texts(looks, until):
    clock = VirtualClock(NOON)
    presence = OperatorPresence(clock)
    for at, loop, found in looks:
        clock.advance(at - clock.monotonic())
        presence.observe(loop, found)
    clock.advance(until - clock.monotonic())
    return [notice.text for notice in presence.notices()]


def looks(*found):
    return [(at, "horizontal", settings) for at, settings in found]


@pytest.mark.parametrize(
    ("seen", "until", "is_gone"),
    [
        pytest.param([], 999, False, id="none was ever there"),
        pytest.param(looks((0, NO_LEASE)), 999, False, id="none has published settings"),
        pytest.param(looks((0, renewed(-2))), 5, False, id="a fresh renewal"),
        pytest.param(looks((0, renewed(-2))), 28, True, id="no renewal for two durations"),
        pytest.param(looks((0, renewed(-3600))), 0, True, id="an hour old at the first look"),
        pytest.param(looks((0, renewed(-3600)), (10, renewed(-3590))), 12, False, id="its clock is behind"),
        pytest.param(
            looks((0, renewed(3600)), (10, renewed(3610))), 39, False, id="its clock is ahead and it runs"
        ),
        pytest.param(
            looks((0, renewed(3600)), (10, renewed(3610))), 40, True, id="its clock is ahead and it ended"
        ),
        pytest.param(looks((0, renewed(-2)), (10, renewed(8, holder=""))), 13, False, id="a hand-over"),
        pytest.param(looks((0, renewed(-2)), (10, renewed(8, holder=""))), 15, True, id="released for good"),
        pytest.param(
            looks((0, renewed(-2)), (10, renewed(8, holder="")), (20, renewed(19))),
            22,
            False,
            id="it is back",
        ),
        pytest.param(looks((0, renewed(-2)), (10, NO_LEASE), (20, NO_LEASE)), 31, True, id="uninstalled"),
        pytest.param(looks((0, renewed(-2)), (60, UNANSWERED)), 61, False, id="the cluster does not answer"),
    ],
)
def test_a_lease_that_nobody_renews_is_an_operator_that_does_not_run(seen, until, is_gone):
    assert bool(texts(seen, until)) is is_gone


def test_one_sentence_for_each_operator_says_what_stays_undone():
    vertical = renewed(0, name="vpa")
    seen = [(0, "horizontal", renewed(0)), (0, "recommender", vertical), (0, "updater", vertical)]
    first, second = texts(seen, 60)
    assert first == (
        "The operator does not run: it last renewed its Lease trimtab/trimtab-horizontal at 2026-01-05T12:00:00Z. "
        "Until it is back, no HPA is acted on. What you see is decided here and not carried out."
    )
    assert "no recommendation changes and no pod is resized or evicted" in second
