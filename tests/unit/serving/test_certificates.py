"""What each server says about a certificate and a key that it cannot use."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from trimtab.adapter.auth.tls import served_tls
from trimtab.adapter.config import ServingTls
from trimtab.clock import VirtualClock
from trimtab.operator.vertical.admission.certificates import FileCertificates
from trimtab.serving.certificates import KeyPair, PairFiles, PairOrigin, ServedTls, issue_with_own_authority

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pair() -> KeyPair:
    return issue_with_own_authority("server", ("localhost",), NOW, timedelta(days=30))


def encrypted(key_pem: bytes) -> bytes:
    key = serialization.load_pem_private_key(key_pem, None)
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(pem, form, serialization.BestAvailableEncryption(b"secret"))


def start_webhook(certificate: Path, key: Path) -> None:
    clock = VirtualClock(NOW)
    clock.run(FileCertificates(clock, certificate, key, None).current())


def start_dashboard(certificate: Path, key: Path) -> None:
    origin = PairOrigin("the dashboard", certificate, key)
    ServedTls(origin, PairFiles(origin))


def start_adapter(certificate: Path, key: Path) -> None:
    settings = ServingTls(certificate_file=certificate.name, key_file=key.name)
    served_tls(VirtualClock(NOW), settings, certificate.parent)


@pytest.mark.parametrize("start", [start_webhook, start_dashboard, start_adapter])
@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        pytest.param(pair().certificate_pem, pair().key_pem, ("does not belong", "{key}", "{certificate}"), id="of two pairs"),
        pytest.param(None, pair().key_pem, ("cannot read", "{certificate}", "No such file"), id="no certificate"),
        pytest.param(pair().certificate_pem, None, ("cannot read", "{key}", "No such file"), id="no key"),
        pytest.param(b"hello", pair().key_pem, ("not a PEM certificate", "{certificate}"), id="no PEM certificate"),
        pytest.param(pair().certificate_pem, b"hello", ("key cannot be read", "{key}"), id="no PEM key"),
        pytest.param(pair().certificate_pem, encrypted(pair().key_pem), ("key cannot be read", "{key}"), id="encrypted"),
    ],
)  # fmt: skip
def test_a_pair_that_cannot_be_used_is_refused_with_its_files_and_what_to_do(
    tmp_path, start, certificate, key, words
):
    """The dashboard and the adapter passed on the text of OpenSSL, such as KEY_VALUES_MISMATCH."""
    files = {"certificate": tmp_path / "tls.crt", "key": tmp_path / "tls.key"}
    for path, content in zip(files.values(), (certificate, key), strict=True):
        if content is not None:
            path.write_bytes(content)
    with pytest.raises(ValueError, match=start.__name__.removeprefix("start_")) as refused:
        start(*files.values())
    assert [word for word in words if word.format(**files) not in str(refused.value)] == []
    assert "; put " in str(refused.value)


@pytest.mark.parametrize("start", [start_webhook, start_dashboard, start_adapter])
def test_a_good_pair_is_used(tmp_path, start):
    good = pair()
    (tmp_path / "tls.crt").write_bytes(good.certificate_pem)
    (tmp_path / "tls.key").write_bytes(good.key_pem)
    start(tmp_path / "tls.crt", tmp_path / "tls.key")
