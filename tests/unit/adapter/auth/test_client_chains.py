"""A client's chain is accepted and refused as Go's crypto/x509 does it, for the key usage clientAuth."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trimtab.adapter.auth.front_proxy import MAX_CERTIFICATES, is_trusted_client

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VALID = (NOW - timedelta(days=1), NOW + timedelta(days=1))
OVER = (NOW - timedelta(days=9), NOW - timedelta(days=1))
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
AUTHORITY = x509.BasicConstraints(ca=True, path_length=None)
LEAF = x509.BasicConstraints(ca=False, path_length=None)
UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"x")


@dataclass(frozen=True)
class Made:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def made(
    name: str,
    issuer: Made | None = None,
    *extensions: x509.ExtensionType,
    valid: tuple[datetime, datetime] = VALID,
) -> Made:
    """Make a certificate, signed by another one or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=not isinstance(extension, x509.ExtendedKeyUsage))
    return Made(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def uses(*which: x509.ObjectIdentifier) -> x509.ExtendedKeyUsage:
    return x509.ExtendedKeyUsage(which)


def signing(*, allowed: bool) -> x509.KeyUsage:
    return x509.KeyUsage(True, False, False, False, False, allowed, False, False, False)


ROOT, OTHER_ROOT = made("root", None, AUTHORITY, signing(allowed=True)), made("root", None, AUTHORITY)
BETWEEN = made("between", ROOT, AUTHORITY, signing(allowed=True))
BELOW = made("below", BETWEEN, AUTHORITY)
PROXY = made("proxy", ROOT, uses(CLIENT))
FAR_PROXY = made("proxy", BELOW, LEAF, uses(SERVER, CLIENT))
ALONE = made("alone", None, uses(CLIENT))
OLD_ROOT = made("old", None, AUTHORITY, valid=OVER)
OLD_BETWEEN = made("between", ROOT, AUTHORITY, valid=OVER)
NO_AUTHORITY = made("leaf", ROOT, LEAF)
SAYS_NOTHING = made("leaf", ROOT)
MAY_NOT_SIGN = made("between", ROOT, AUTHORITY, signing(allowed=False))
FOR_SERVERS = made("between", ROOT, AUTHORITY, uses(SERVER))
SHORT = made("short", None, x509.BasicConstraints(ca=True, path_length=0))
TOO_DEEP = made("between", SHORT, AUTHORITY)


@pytest.mark.parametrize(
    ("chain", "roots", "want"),
    [
        pytest.param([PROXY], [ROOT], True, id="signed by a root"),
        pytest.param([PROXY], [OTHER_ROOT, ROOT], True, id="signed by the second of two roots of one name"),
        pytest.param([FAR_PROXY, BELOW, BETWEEN], [ROOT], True, id="through two intermediates"),
        pytest.param([FAR_PROXY, BETWEEN, ROOT, BELOW], [ROOT], True, id="sent in any order, with the root"),
        pytest.param([FAR_PROXY, OTHER_ROOT, BELOW, BETWEEN], [ROOT], True, id="with one that leads nowhere"),
        pytest.param([FAR_PROXY], [BELOW], True, id="the published authority is itself an intermediate"),
        pytest.param([ALONE], [ALONE], True, id="published itself"),
        pytest.param([made("proxy", ROOT)], [ROOT], True, id="for any use"),
        pytest.param([PROXY], [OTHER_ROOT], False, id="a root of the same name and another key"),
        pytest.param([FAR_PROXY, BELOW], [ROOT], False, id="an intermediate is missing"),
        pytest.param([FAR_PROXY, BELOW, BETWEEN, OTHER_ROOT], [OTHER_ROOT], False, id="to another root"),
        pytest.param([PROXY, ROOT], [], False, id="no root"),
        pytest.param([PROXY, ROOT], [OTHER_ROOT], False, id="a root that only the client believes"),
        pytest.param([made("proxy", ROOT, uses(SERVER))], [ROOT], False, id="a server's certificate"),
        pytest.param([made("proxy", ROOT, valid=OVER)], [ROOT], False, id="an expired certificate"),
        pytest.param([made("proxy", OLD_BETWEEN), OLD_BETWEEN], [ROOT], False, id="an expired intermediate"),
        pytest.param([made("proxy", OLD_ROOT)], [OLD_ROOT], False, id="an expired root"),
        pytest.param([made("proxy", NO_AUTHORITY), NO_AUTHORITY], [ROOT], False, id="below a leaf"),
        pytest.param([made("proxy", SAYS_NOTHING), SAYS_NOTHING], [ROOT], False, id="below one that says nothing"),
        pytest.param([made("proxy", MAY_NOT_SIGN), MAY_NOT_SIGN], [ROOT], False, id="below one that may not sign"),
        pytest.param([made("proxy", FOR_SERVERS), FOR_SERVERS], [ROOT], False, id="below one for servers"),
        pytest.param([made("proxy", TOO_DEEP), TOO_DEEP], [SHORT], False, id="deeper than the root allows"),
        pytest.param([made("proxy", ROOT, UNKNOWN)], [ROOT], False, id="a critical extension nobody knows"),
        pytest.param([PROXY] * (MAX_CERTIFICATES + 1), [ROOT], False, id="too many certificates"),
        pytest.param([], [ROOT], False, id="no certificate"),
    ],
)  # fmt: skip
def test_a_chain_is_judged_as_go_judges_it(chain, roots, want):
    certificates = [one.certificate for one in chain]
    assert is_trusted_client(certificates, [root.certificate for root in roots], NOW) is want
