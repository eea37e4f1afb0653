"""Verifies a client's certificate chain up to a root, as Go's crypto/x509 does.

kube-apiserver checks its front proxy with the published roots, the intermediates of the handshake and the key usage
`clientAuth`. OpenSSL's own check of the handshake does not suffice: it also accepts the authorities of users.
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

MAX_CERTIFICATES = 10
"""Certificates of one client that are verified. A longer chain is a mistake or an attack."""

_CLIENT_USES = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}


def is_trusted_client(
    chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate], now: datetime
) -> bool:
    """Return whether the chain belongs to a client and ends at one of the roots."""
    if not chain or not roots or len(chain) > MAX_CERTIFICATES:
        return False
    policy = PolicyBuilder().store(Store(list(roots))).time(now)
    verifier = policy.extension_policies(ca_policy=_CA, ee_policy=_LEAF).build_client_verifier()
    try:
        verifier.verify(chain[0], list(chain[1:]))
    except VerificationError:
        return False
    return True


def _check_authority(
    _policy: Policy, _certificate: x509.Certificate, extension: x509.BasicConstraints
) -> None:
    if not extension.ca:
        raise ValueError("not an authority")


def _check_signing(_policy: Policy, _certificate: x509.Certificate, extension: x509.KeyUsage | None) -> None:
    if extension is not None and not extension.key_cert_sign:
        raise ValueError("may not sign certificates")


def _check_client(
    _policy: Policy, _certificate: x509.Certificate, extension: x509.ExtendedKeyUsage | None
) -> None:
    if extension is not None and not _CLIENT_USES & set(extension):
        raise ValueError("not for clients")


# The rules of the public web require an alternative name, which a front proxy's certificate does not have.
_LEAF = ExtensionPolicy.permit_all().may_be_present(
    x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_client
)
_CA = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _check_authority)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _check_signing)
    .may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_client)
)
