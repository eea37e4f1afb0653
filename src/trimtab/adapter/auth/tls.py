"""The adapter's TLS: its certificate, and the authorities of client certificates."""

import ssl
from datetime import timedelta
from pathlib import Path

from trimtab.adapter.config import ServingTls
from trimtab.adapter.files import ConfigurationError, below
from trimtab.clock import Clock
from trimtab.serving import tls
from trimtab.serving.certificates import (
    CertificateError,
    KeyPair,
    MadePair,
    PairFiles,
    PairOrigin,
    ServedTls,
    issue_with_own_authority,
)

LIFETIME = timedelta(days=365)


def served_tls(clock: Clock, settings: ServingTls, root: Path) -> ServedTls:
    """Return the TLS of the settings. Raise ConfigurationError if they name no usable pair."""
    if bool(settings.certificate_file) != bool(settings.key_file):
        raise ConfigurationError("tls: certificateFile and keyFile go together; set both or none")

    def make() -> KeyPair:
        pair = issue_with_own_authority("trimtab adapter", settings.names, clock.now(), LIFETIME)
        below(root, settings.authority_file).write_bytes(pair.authority_pem)
        return pair

    files = [below(root, name) for name in (settings.certificate_file, settings.key_file) if name]
    origin = PairOrigin("the adapter", *files)
    try:
        source = PairFiles(origin, clock) if files else MadePair(clock, make)
        return ServedTls(origin, source, client_context)
    except CertificateError as error:
        raise ConfigurationError(f"tls: {error}") from error


def client_context(authorities: str = "") -> ssl.SSLContext:
    """Return a context that requests client certificates of the authorities.

    A client without a certificate passes the handshake and must send a token. A client with a certificate of another
    authority fails the handshake.
    """
    context = tls.server_context()
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A resumed session would skip the check of the client's certificate.
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_OPTIONAL
    # An intermediate authority in the cluster's bundle is a trust anchor, as in Go.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    if authorities:
        context.load_verify_locations(cadata=authorities)
    return context
