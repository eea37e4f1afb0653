"""How long a review is believed, how a rule rests and returns, how a trust is read."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from trimtab.adapter.api.health import RuleHealth, State
from trimtab.adapter.auth.access_reviews import ReviewCache
from trimtab.adapter.auth.front_proxy import Trust, read_trust
from trimtab.adapter.errors import Unavailable
from trimtab.clock import VirtualClock


def test_an_answer_is_believed_for_ten_seconds_at_most_whatever_is_configured():
    clock = VirtualClock()
    asked = []

    async def scenario():
        cache: ReviewCache[str, Any] = ReviewCache(clock, 3600.0)

        async def ask():
            asked.append(clock.monotonic())
            return True

        for _ in range(25):
            await cache.get("ann", ask)
            await clock.sleep(1)

    clock.run(scenario())
    assert asked == [0, 10, 20]


def test_equal_questions_at_once_are_one_question_and_failures_are_not_remembered():
    clock = VirtualClock()
    asked = []

    async def scenario():
        cache: ReviewCache[str, Any] = ReviewCache(clock, 10.0)

        async def ask():
            asked.append(1)
            await clock.sleep(1)
            if len(asked) == 1:
                raise Unavailable("down")
            return True

        first = await asyncio.gather(*(cache.get("ann", ask) for _ in range(5)), return_exceptions=True)
        assert all(isinstance(one, Unavailable) for one in first)
        assert await cache.get("ann", ask)

    clock.run(scenario())
    assert len(asked) == 2


def test_an_asker_that_goes_away_does_not_take_the_answer_from_the_others():
    clock = VirtualClock()

    async def scenario():
        cache: ReviewCache[str, Any] = ReviewCache(clock, 10.0)

        async def ask():
            await clock.sleep(1)
            return "yes"

        gone = asyncio.ensure_future(cache.get("ann", ask))
        stays = asyncio.ensure_future(cache.get("ann", ask))
        await clock.sleep(0.5)
        gone.cancel()
        return await stays

    assert clock.run(scenario()) == "yes"


def test_a_refused_rule_rests_longer_each_time_and_is_well_after_one_answer():
    clock = VirtualClock()
    health = RuleHealth(clock, "rule")
    rests = []
    for _ in range(7):
        health.refused("parse error")
        start = clock.monotonic()
        while health.is_paused:
            clock.advance(1)
        rests.append(clock.monotonic() - start)
        assert health.report().state is State.FAILING
    assert rests == [15, 30, 60, 120, 240, 300, 300]
    health.worked()
    assert health.report().state is State.OK


def test_a_certificate_is_the_front_proxys_only_with_authority_name_and_time():
    authority = trustme.CA()
    data = {
        "requestheader-client-ca-file": authority.cert_pem.bytes().decode(),
        "requestheader-allowed-names": '["proxy", "other-proxy"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    trust = read_trust(data)

    def der(issuer, name):
        pem = issuer.issue_cert(common_name=name).cert_chain_pems[0].bytes()
        return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)

    now = datetime.now(UTC)
    assert trust.user_headers == ("x-remote-user",)
    assert trust.vouches_for((der(authority, "proxy"),), now)
    assert not trust.vouches_for((der(authority, "someone"),), now)
    assert not trust.vouches_for((der(trustme.CA(), "proxy"),), now)
    assert not trust.vouches_for((der(authority, "proxy"),), now - timedelta(days=100_000))
    assert not trust.vouches_for((b"nonsense",), now)
    assert not Trust().vouches_for((der(authority, "proxy"),), now)
    any_name = read_trust({**data, "requestheader-allowed-names": "[]"})
    assert any_name.vouches_for((der(authority, "someone"),), now)


@pytest.mark.parametrize(
    "data",
    [
        {"requestheader-client-ca-file": "nonsense"},
        {"requestheader-allowed-names": "front-proxy"},
        {"requestheader-username-headers": '{"a": 1}'},
    ],
)
def test_a_trust_that_makes_no_sense_is_refused(data):
    with pytest.raises(ValueError, match=r"."):
        read_trust(data)
