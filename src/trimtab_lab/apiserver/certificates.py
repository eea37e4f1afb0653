"""The lab's key pairs, made at start: for its addresses, and for its calls to other servers."""

import ssl
from datetime import datetime, timedelta

from trimtab.serving.certificates import CLIENT, KeyPair, issue_with_own_authority
from trimtab.serving.tls import load_pair, server_context

#: A lab runs for hours, so its certificates need not live longer.
LIFETIME = timedelta(days=30)


def make_server_pair(names: list[str], now: datetime) -> KeyPair:
    """Return a new key pair for a server with these names and addresses."""
    return issue_with_own_authority("trimtab-lab", names, now, LIFETIME)


def make_client_pair(name: str, now: datetime) -> KeyPair:
    """Return a new key pair that names a client."""
    return issue_with_own_authority(name, [name], now, LIFETIME, CLIENT)


def server_tls(pair: KeyPair) -> ssl.SSLContext:
    """Return the TLS context of a server with this key pair."""
    context = server_context()
    load_pair(context, pair.certificate_pem, pair.key_pem)
    return context
