"""Key pairs: made, renewed in time, and never trusted too late (S8)."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from trimtab.clock import VirtualClock
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.certificates import (
    AUTHORITY_LIFETIME,
    LEAF_LIFETIME,
    ORIGIN,
    FileCertificates,
    Serving,
    _data,
    _read,
    make_authority,
    make_material,
    names_of,
    renewed,
)
from trimtab.operator.vertical.admission.tls import tls_context
from trimtab.serving.certificates import CertificateError, KeyPair

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("trimtab-webhook.trimtab.svc", "127.0.0.1")


def is_trusted(pair: KeyPair, bundle: bytes) -> bool:
    """Return whether a certificate of the bundle signed the pair."""
    leaf = pair.certificate
    for authority in x509.load_pem_x509_certificates(bundle):
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, TypeError, Exception):  # noqa: BLE001 - any refusal counts
            continue
        return True
    return False


def test_a_fresh_pair_is_for_our_names_and_its_authority_is_in_the_bundle():
    material = make_material(NAMES, NOW)
    assert names_of(material.leaf) == frozenset(NAMES)
    assert is_trusted(material.leaf, material.bundle)
    ssl.create_default_context(cadata=material.bundle.decode())
    assert renewed(material, NAMES, NOW + timedelta(days=1)) is material


def test_after_two_thirds_of_its_life_a_pair_is_made_anew_under_the_same_authority():
    material = make_material(NAMES, NOW)
    later = renewed(material, NAMES, NOW + LEAF_LIFETIME * 2 / 3)
    assert later.leaf.certificate.serial_number != material.leaf.certificate.serial_number
    assert later.bundle == material.bundle


def test_other_names_need_another_pair():
    material = make_material(NAMES, NOW)
    later = renewed(material, ("elsewhere.svc",), NOW)
    assert names_of(later.leaf) == {"elsewhere.svc"}


def test_through_a_whole_change_of_authority_the_pair_in_use_is_always_trusted():
    material = make_material(NAMES, NOW)
    now = NOW + AUTHORITY_LIFETIME * 2 / 3
    first = material.authority.certificate.serial_number
    published = b""
    for _ in range(20):
        before = material
        material = renewed(material, NAMES, now)
        assert is_trusted(material.leaf, material.bundle)
        assert is_trusted(material.leaf, before.bundle), "trusted by callers who have not seen the new bundle"
        assert is_trusted(before.leaf, material.bundle), "copies that still serve the old pair stay trusted"
        published = published or (material.bundle if material.next_authority else b"")
        now += timedelta(seconds=30)
    assert published
    assert material.authority.certificate.serial_number != first
    assert material.next_authority is None


def test_an_expired_pair_in_a_file_is_refused_with_its_date(tmp_path):
    pair = make_material(NAMES, NOW).leaf
    (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    clock = VirtualClock(NOW + LEAF_LIFETIME + timedelta(days=1))
    files = FileCertificates(clock, tmp_path / "tls.crt", tmp_path / "tls.key", None)
    with pytest.raises(CertificateError, match="expired on 2026-01-31"):
        clock.run(files.current())


def test_a_file_that_is_missing_is_named():
    clock = VirtualClock(NOW)
    files = FileCertificates(clock, Path("/nowhere/tls.crt"), Path("/nowhere/tls.key"), None)
    with pytest.raises(CertificateError, match=r"/nowhere/tls\.crt"):
        clock.run(files.current())


def test_a_key_of_another_pair_in_a_file_is_refused_by_name(tmp_path):
    clock = VirtualClock(NOW)
    (tmp_path / "tls.crt").write_bytes(make_material(NAMES, NOW).leaf.certificate_pem)
    (tmp_path / "tls.key").write_bytes(make_material(NAMES, NOW).leaf.key_pem)
    files = FileCertificates(clock, tmp_path / "tls.crt", tmp_path / "tls.key", None)
    with pytest.raises(CertificateError, match="key does not belong to its certificate"):
        clock.run(files.current())


def test_a_key_of_another_pair_in_the_secret_is_replaced_under_the_same_authority():
    material, other = make_material(NAMES, NOW), make_material(NAMES, NOW)
    mixed = replace(material, leaf=replace(material.leaf, key_pem=other.leaf.key_pem))
    later = renewed(mixed, NAMES, NOW)
    ORIGIN.check(later.leaf)
    assert later.bundle == material.bundle


def test_an_authority_whose_key_is_anothers_is_not_read_from_the_secret():
    material, other = make_material(NAMES, NOW), make_material(NAMES, NOW)
    for mixed in (
        replace(material, authority=replace(material.authority, key_pem=other.authority.key_pem)),
        replace(material, next_authority=replace(material.authority, key_pem=other.authority.key_pem)),
    ):
        assert _read({"data": _data(mixed)}) is None
    assert _read({"data": _data(material)}) == material


def test_no_key_is_in_a_repr():
    """Log lines and tracebacks hold the repr of values."""
    material = replace(make_material(NAMES, NOW), next_authority=make_authority(NOW))
    pair = material.leaf
    context = tls_context(Settings.of())
    for value in (pair, material, Serving(pair, material.bundle), context):
        assert "PRIVATE KEY" not in repr(value)
        assert "PRIVATE KEY" not in str(value)


def test_the_authority_is_read_from_its_own_file(tmp_path):
    clock = VirtualClock(NOW)
    material = make_material(NAMES, NOW)
    certificate, key, authority = (tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt"))
    certificate.write_bytes(material.leaf.certificate_pem)
    key.write_bytes(material.leaf.key_pem)
    files = FileCertificates(clock, certificate, key, authority)
    with pytest.raises(CertificateError, match="cannot read the authority of the webhook's certificate"):
        clock.run(files.current())
    authority.write_bytes(b"the authority")
    assert clock.run(files.current()).bundle == b"the authority"
    alone = FileCertificates(clock, certificate, key, None)
    assert clock.run(alone.current()).bundle == material.leaf.certificate_pem
