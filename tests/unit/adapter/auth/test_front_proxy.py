"""How a failing rule pauses and returns, and how the front proxy's trust is read."""

from datetime import UTC, datetime, timedelta

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from trimtab.adapter.api.health import RuleHealth, State
from trimtab.adapter.auth.front_proxy import Trust, parse_trust
from trimtab.clock import VirtualClock


def test_a_refused_rule_rests_longer_each_time_and_is_well_after_one_answer():
    clock = VirtualClock()
    health = RuleHealth(clock, "rule")
    rests = []
    for _ in range(7):
        health.disable("parse error")
        start = clock.monotonic()
        while health.is_paused:
            clock.advance(1)
        rests.append(clock.monotonic() - start)
        assert health.report().state is State.FAILING
    assert rests == [15, 30, 60, 120, 240, 300, 300]
    health.record_success()
    assert health.report().state is State.OK


def test_a_certificate_is_the_front_proxys_only_with_authority_name_and_time():
    authority = trustme.CA()
    data = {
        "requestheader-client-ca-file": authority.cert_pem.bytes().decode(),
        "requestheader-allowed-names": '["proxy", "other-proxy"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    trust = parse_trust(data)

    def der(issuer, name):
        pem = issuer.issue_cert(common_name=name).cert_chain_pems[0].bytes()
        return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)

    now = datetime.now(UTC)
    assert trust.user_headers == ("x-remote-user",)
    assert trust.is_front_proxy((der(authority, "proxy"),), now)
    assert not trust.is_front_proxy((der(authority, "someone"),), now)
    assert not trust.is_front_proxy((der(trustme.CA(), "proxy"),), now)
    assert not trust.is_front_proxy((der(authority, "proxy"),), now - timedelta(days=100_000))
    assert not trust.is_front_proxy((b"nonsense",), now)
    assert not Trust().is_front_proxy((der(authority, "proxy"),), now)
    any_name = parse_trust({**data, "requestheader-allowed-names": "[]"})
    assert any_name.is_front_proxy((der(authority, "someone"),), now)


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
        parse_trust(data)
