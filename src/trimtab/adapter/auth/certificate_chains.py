"""Verifies a client's certificate chain as Go's crypto/x509 does: to a root, through what the client sent.

kube-apiserver checks its front proxy with the published roots, the intermediates of the handshake and the key usage
`clientAuth`. OpenSSL's own check of the handshake cannot answer this: it also accepts the authorities of users.
"""

from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

MOST_CERTIFICATES = 10
"""Certificates of one client that are looked at: a longer chain is a mistake or an attack."""

_CLIENT_USES = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}


def is_client_of(chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate], now: datetime) -> bool:
    """Return whether the first certificate is a client's and leads to one of the roots through the others."""
    if not chain or not roots or len(chain) > MOST_CERTIFICATES:
        return False
    policy = PolicyBuilder().store(Store(list(roots))).time(now)
    verifier = policy.extension_policies(ca_policy=_CA, ee_policy=_LEAF).build_client_verifier()
    try:
        verifier.verify(chain[0], list(chain[1:]))
    except VerificationError:
        return False
    return True


def _check_authority(_policy: Policy, _certificate: x509.Certificate, found: x509.BasicConstraints) -> None:
    if not found.ca:
        raise ValueError("not an authority")


def _check_signing(_policy: Policy, _certificate: x509.Certificate, found: x509.KeyUsage | None) -> None:
    if found is not None and not found.key_cert_sign:
        raise ValueError("may not sign certificates")


def _check_client(
    _policy: Policy, _certificate: x509.Certificate, found: x509.ExtendedKeyUsage | None
) -> None:
    if found is not None and not _CLIENT_USES & set(found):
        raise ValueError("not for clients")


# A front proxy's certificate has no alternative name, which the rules of the public web ask for.
_LEAF = ExtensionPolicy.permit_all().may_be_present(
    x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_client
)
_CA = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _check_authority)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _check_signing)
    .may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_client)
)
