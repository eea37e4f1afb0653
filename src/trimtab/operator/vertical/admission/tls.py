"""Validates the TLS flags of the webhook and builds its SSL context."""

import logging
import ssl
from pathlib import Path
from typing import Final

from trimtab.operator.settings.compat import VPA, upstreams
from trimtab.operator.settings.declare import reject_bad_values
from trimtab.operator.settings.settings import Settings
from trimtab.serving.tls import server_context

log = logging.getLogger(__name__)

_VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "tls1_2": ssl.TLSVersion.TLSv1_2,
    "tls1_3": ssl.TLSVersion.TLSv1_3,
}
TLS_1_2_CIPHERS: Final = {
    f"TLS_ECDHE_{key}_WITH_{iana}": f"ECDHE-{key}-{openssl}"
    for key in ("ECDSA", "RSA")
    for iana, openssl in (
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
"""The TLS 1.2 ciphers that Go's library considers safe, with their OpenSSL names."""
_TLS_1_3_CIPHERS: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Always on. As in Go's library, naming them changes nothing."""


def refuse_unusable_tls(settings: Settings) -> None:
    """Raise ValueError, with the flag's name, if the webhook cannot serve with these settings."""
    tls_context(settings)
    if "admission" in settings.components:
        _refuse_missing_files(settings)


def tls_context(settings: Settings) -> ssl.SSLContext:
    """Return the SSL context of the flags, or raise ValueError for an unknown version or cipher."""
    reject_bad_values(settings.admission)
    context = server_context(_VERSIONS[settings.admission.min_tls_version])
    if chosen := _chosen_ciphers(settings):
        try:
            context.set_ciphers(":".join(chosen))
        except ssl.SSLError as error:
            raise ValueError(
                f"--tls-ciphers: OpenSSL on this machine allows none of {settings.admission.tls_ciphers}; name others, or none"
            ) from error
    return context


def _chosen_ciphers(settings: Settings) -> list[str]:
    """Return the OpenSSL names of the chosen TLS 1.2 ciphers. None means OpenSSL's defaults."""
    named = [
        name.strip() for name in settings.admission.tls_ciphers.replace(",", ":").split(":") if name.strip()
    ]
    chosen = [TLS_1_2_CIPHERS[name] for name in named if name in TLS_1_2_CIPHERS]
    unknown = [name for name in named if name not in TLS_1_2_CIPHERS and name not in _TLS_1_3_CIPHERS]
    if VPA in upstreams(settings.compat):  # upstream skips unknown names, and then uses the defaults
        if unknown:
            log.warning("--tls-ciphers: %s are not known and skipped", ", ".join(unknown))
        return chosen
    if unknown:
        raise ValueError(
            f"--tls-ciphers: {unknown[0]} is not known; use some of {', '.join(TLS_1_2_CIPHERS)}"
        )
    if named and not chosen and _VERSIONS[settings.admission.min_tls_version] is ssl.TLSVersion.TLSv1_2:
        raise ValueError(
            "--tls-ciphers names no cipher of TLS 1.2; add one, or set --min-tls-version=tls1_3 to serve TLS 1.3 alone"
        )
    return chosen


def _refuse_missing_files(settings: Settings) -> None:
    if not settings.admission.tls_cert_file:
        return  # the webhook issues its own pair
    if not settings.admission.tls_key_file:
        raise ValueError("--tls-private-key-file is missing; name the key of --tls-cert-file")
    files = {
        "--tls-cert-file": settings.admission.tls_cert_file,
        "--tls-private-key-file": settings.admission.tls_key_file,
        "--client-ca-file": settings.admission.tls_ca_file,
    }
    for flag, name in files.items():
        try:
            if name:
                Path(name).read_bytes()
        except OSError as error:
            raise ValueError(
                f"{flag}={name}: {error.strerror}; name a file that can be read, or leave the flag out"
            ) from error
