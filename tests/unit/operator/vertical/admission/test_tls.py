"""TLS settings of the webhook are judged on the command line, before anything is connected or served."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest

from trimtab import cli
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.tls import (
    TLS_1_2_CIPHERS,
    refuse_unusable_tls,
    tls_context,
)
from trimtab.serving.certificates import make_authority

RUN = ["run", "--components=admission", "--kubeconfig=/nowhere"]
GCM, SHA = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"


@pytest.fixture
def pair(tmp_path):
    made = make_authority("webhook", datetime.now(UTC), timedelta(days=1))
    (tmp_path / "tls.crt").write_bytes(made.certificate_pem)
    (tmp_path / "tls.key").write_bytes(made.key_pem)
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(
            ["--min-tls-version=1.2"],
            "--min-tls-version=1.2 is not known; use tls1_2 or tls1_3",
            id="no version by its name",
        ),
        pytest.param(
            ["--tls-ciphers=ECDHE-RSA-AES128-GCM-SHA256"],
            "--tls-ciphers: ECDHE-RSA-AES128-GCM-SHA256 is not known; use",
            id="a cipher by the name that OpenSSL has for it",
        ),
        pytest.param(
            [f"--tls-ciphers={GCM},TLS_RSA_WITH_RC4_128_SHA"],
            "--tls-ciphers: TLS_RSA_WITH_RC4_128_SHA is not known",
            id="a weak cipher beside a good one",
        ),
        pytest.param(
            ["--tls-ciphers=TLS_AES_128_GCM_SHA256"],
            "--tls-ciphers names no cipher of TLS 1.2; add one, or set --min-tls-version=tls1_3",
            id="ciphers of TLS 1.3 alone, which are always on",
        ),
        pytest.param(
            ["--tls-cert-file=/nowhere/tls.crt", "--tls-private-key-file=/nowhere/tls.key"],
            "--tls-cert-file=/nowhere/tls.crt: No such file or directory; name a file that can be read, or leave the flag out",
            id="no such certificate",
        ),
    ],
)
@pytest.mark.parametrize("by", ["flag", "variable"])
def test_a_wrong_setting_is_refused_in_one_line(flags, words, by, capsys, monkeypatch):
    """It was found after the caches had filled, and ended the process with a traceback or not at all."""
    if by == "variable":
        for flag in flags:
            name, _, value = flag.partition("=")
            monkeypatch.setenv("TRIMTAB_" + name.strip("-").upper().replace("-", "_"), value)
        flags = []
    assert cli.answer([*RUN, *flags]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("trimtab: ")
    assert words in line


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param([], "--tls-private-key-file is missing", id="a certificate without its key"),
        pytest.param(["--tls-private-key-file={}/other.key"], "other.key: No such file", id="no such key"),
        pytest.param(["--tls-private-key-file={}"], "Is a directory", id="a directory"),
        pytest.param(
            ["--tls-private-key-file={}/tls.key", "--client-ca-file={}/ca.crt"],
            "--client-ca-file=",
            id="no such authority",
        ),
    ],
)
def test_the_other_files_of_a_certificate_must_be_there_too(pair, flags, words, capsys):
    given = [flag.format(pair) for flag in flags]
    assert cli.answer([*RUN, f"--tls-cert-file={pair}/tls.crt", *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_upstreams_program_refuses_its_missing_certificate_at_once(capsys):
    assert cli.answer(["vpa-admission-controller", "--kubeconfig=/nowhere"]) == 2
    assert "--tls-cert-file=/etc/tls-certs/serverCert.pem: No such file" in capsys.readouterr().err


def test_files_are_of_no_concern_to_programs_without_webhooks():
    refuse_unusable_tls(Settings.of(components=("updater",), tls_cert_file="/nowhere"))


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="the defaults"),
        pytest.param({"min_tls_version": ""}, id="upstream takes an empty version for 1.2"),
        pytest.param({"tls_ciphers": f"{GCM}, {SHA}"}, id="ciphers"),
        pytest.param({"tls_ciphers": f"TLS_AES_128_GCM_SHA256:{GCM}"}, id="one of TLS 1.3 beside one of 1.2"),
        pytest.param(
            {"tls_ciphers": "TLS_AES_128_GCM_SHA256", "min_tls_version": "tls1_3"}, id="TLS 1.3 alone"
        ),
        pytest.param(
            {"tls_ciphers": "TLS_RSA_WITH_RC4_128_SHA", "compat": "vpa-1.8"},
            id="upstream skips ciphers that it does not know",
        ),
    ],
)
def test_what_can_be_served_is_accepted(settings):
    refuse_unusable_tls(Settings.of(components=("admission",), **settings))


def test_a_pair_that_is_there_is_accepted(pair):
    refuse_unusable_tls(
        Settings.of(
            components=("admission",), tls_cert_file=f"{pair}/tls.crt", tls_key_file=f"{pair}/tls.key"
        )
    )


def test_the_context_has_the_ciphers_and_the_version():
    context = tls_context(Settings.of(min_tls_version="tls1_2", tls_ciphers=f"{GCM},{SHA}"))
    of_1_2 = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert of_1_2 == {TLS_1_2_CIPHERS[GCM], TLS_1_2_CIPHERS[SHA]}
    assert tls_context(Settings.of(min_tls_version="tls1_3")).minimum_version is ssl.TLSVersion.TLSv1_3


def test_ciphers_that_this_openssl_does_not_allow_are_refused(monkeypatch):
    """As under FIPS, which leaves out some of them. The webhook would serve with none of those chosen."""
    monkeypatch.setitem(TLS_1_2_CIPHERS, GCM, "NO-SUCH-CIPHER")
    with pytest.raises(ValueError, match=f"--tls-ciphers: OpenSSL .* allows none of {GCM}"):
        tls_context(Settings.of(tls_ciphers=GCM))
    offered = {
        cipher["name"] for cipher in tls_context(Settings.of(tls_ciphers=f"{GCM},{SHA}")).get_ciphers()
    }
    assert TLS_1_2_CIPHERS[SHA] in offered, "one of two is enough"
