"""Kubeconfig files are read as kubectl reads them; the official client is the judge where it is right."""

import base64
import json
import ssl
import sys
import warnings
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
import trustme
import yaml

from trimtab.clock import VirtualClock
from trimtab.cluster.config import load_connection, load_in_cluster, load_kubeconfig
from trimtab.cluster.config.connection import is_excluded, proxy_for
from trimtab.cluster.config.schema import NamedUser
from trimtab.cluster.errors import ConfigError

CA = trustme.CA()
PAIR = CA.issue_cert("client.example")
CERT = PAIR.cert_chain_pems[0].bytes()
KEY = PAIR.private_key_pem.bytes()
CA_PEM = CA.cert_pem.bytes()


def b64(data):
    return base64.b64encode(data).decode()


def config(cluster=None, user=None, **more):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        **more,
    }


@pytest.fixture
def write(tmp_path):
    def writer(content, name="config"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return str(path)

    return writer


def run(coroutine):
    return VirtualClock().run(coroutine)


def authorization(connection):
    async def ask():
        return (await connection.credentials.current()).authorization

    return run(ask())


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        pytest.param({}, {"token": "t0"}, id="token"),
        pytest.param({}, {"username": "ann", "password": "s3"}, id="user name and password"),
        pytest.param(
            {"certificate-authority-data": b64(CA_PEM)},
            {"client-certificate-data": b64(CERT), "client-key-data": b64(KEY)},
            id="certificates as data",
        ),
        pytest.param(
            {"certificate-authority": "ca.pem"},
            {"client-certificate": "c.pem", "client-key": "k.pem"},
            id="certificates as files",
        ),
        pytest.param({"insecure-skip-tls-verify": True}, {}, id="insecure as written"),
        pytest.param(
            {"tls-server-name": "api.example"}, {"tokenFile": "tok"}, id="server name and token file"
        ),
        pytest.param({"proxy-url": "http://proxy.example:3128"}, {}, id="proxy"),
    ],
)
def test_agrees_with_the_official_client(write, tmp_path, cluster, user):
    for name, content in {"ca.pem": CA_PEM, "c.pem": CERT, "k.pem": KEY, "tok": b"file-token\n"}.items():
        (tmp_path / name).write_bytes(content)
    path = write(config(cluster, user))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kubernetes import client as oracle_client
        from kubernetes import config as oracle

        judge = oracle_client.Configuration()
        oracle.load_kube_config(path, client_configuration=judge)
    ours = load_kubeconfig(VirtualClock(), path, environ={})
    assert ours.server == judge.host
    assert (
        authorization(ours) == judge.get_api_key_with_prefix("authorization") or judge.get_basic_auth_token()
    )
    assert ours.tls.insecure == (not judge.verify_ssl)
    assert ours.tls.server_name == judge.tls_server_name
    assert (ours.proxy or None) == (judge.proxy or None)
    context = ours.tls.context()
    assert context.verify_mode == (ssl.CERT_NONE if ours.tls.insecure else ssl.CERT_REQUIRED)
    if judge.ssl_ca_cert:
        assert bytes_of(judge.ssl_ca_cert) == bytes_of(ours.tls.ca_data or ours.tls.ca_file)
    if judge.cert_file:
        assert bytes_of(judge.cert_file) == bytes_of(ours.tls.certificate_data or ours.tls.certificate_file)
        assert bytes_of(judge.key_file) == bytes_of(ours.tls.key_data or ours.tls.key_file)


def bytes_of(source):
    return source if isinstance(source, bytes) else Path(source).read_bytes()


def test_verification_is_on_unless_the_file_says_otherwise(write):
    connection = load_kubeconfig(VirtualClock(), write(config()), environ={})
    context = connection.tls.context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_the_first_file_of_the_list_wins_and_paths_belong_to_their_file(write, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "tok").write_text("from-a")
    first = {"users": [{"name": "u", "user": {"tokenFile": "tok"}}], "current-context": "here"}
    one = write(first, "a/config")
    two = write(config(user={"token": "from-b"}, **{"current-context": "other"}), "b")
    environ = {"KUBECONFIG": f"{one}:{tmp_path}/missing:{two}"}
    connection = load_kubeconfig(VirtualClock(), environ=environ)
    assert authorization(connection) == "Bearer from-a"
    assert connection.namespace == "shop"


def test_a_context_can_be_named(write):
    content = config()
    content["contexts"].append({"name": "there", "context": {"cluster": "c", "namespace": "other"}})
    assert load_kubeconfig(VirtualClock(), write(content), "there", environ={}).namespace == "other"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("{", "not YAML", id="not YAML"),
        pytest.param("- a\n- b\n", "a kubeconfig is a mapping, this is a list", id="a list"),
        pytest.param("", "the kubeconfig has no contexts; set KUBECONFIG", id="empty"),
        pytest.param(
            {**config(), "contexts": []}, "the kubeconfig has no contexts; set KUBECONFIG", id="no contexts"
        ),
        pytest.param({**config(), "current-context": ""}, "name one of: here", id="no current context"),
        pytest.param(
            {**config(), "current-context": "x"}, "no context 'x'; there are: here", id="unknown context"
        ),
        pytest.param(
            {**config(), "clusters": []}, "names the cluster 'c', which is not there", id="unknown cluster"
        ),
        pytest.param({**config(), "users": []}, "names the user 'u', which is not there", id="unknown user"),
        pytest.param(config({"server": ""}), "is not an http or https address", id="no server"),
        pytest.param(config({"server": "ftp://x"}), "is not an http or https address", id="strange server"),
        pytest.param(
            config({"server": "https://[::65536]:6443"}),
            "is not an http or https address",
            id="no IPv6 address",
        ),
        pytest.param(config({"server": "https://x:70000"}), "is not an http or https address", id="no port"),
        pytest.param(config({"server": 7}), "Expected `str`, got `int`", id="wrong type"),
        pytest.param(config({"certificate-authority-data": "%%"}), "is not base64", id="bad base64"),
        pytest.param(
            config({"insecure-skip-tls-verify": True, "certificate-authority": "x"}),
            "contradict",
            id="insecure and CA",
        ),
        pytest.param(config({"proxy-url": "socks5://x:1"}), "is not supported", id="socks proxy"),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": "v0"}}), "apiVersion 'v0'", id="old exec"
        ),
        pytest.param(
            config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}),
            "no command",
            id="exec nothing",
        ),
        pytest.param(
            config(
                user={
                    "exec": {
                        "command": "x",
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "interactiveMode": "Always",
                    }
                }
            ),
            "needs a terminal",
            id="exec that asks",
        ),
        pytest.param(config(user={"auth-provider": {"name": "gcp"}}), "no longer exists", id="gcp provider"),
        pytest.param(
            config(user={"auth-provider": {"name": "oidc", "config": {"id-token": "a.b.c"}}}),
            "no usable id-token",
            id="bad id token",
        ),
        pytest.param(
            config(user={"token": "a", "username": "b"}), "cannot both be set", id="token and password"
        ),
        pytest.param(config(user={"token": "a\nX: y"}), "line break", id="a token that would forge headers"),
    ],
)
def test_each_way_to_be_wrong_is_one_clear_line(write, content, message):
    path = write(content)
    with pytest.raises(ConfigError) as caught:
        load_kubeconfig(VirtualClock(), path, environ={})
    assert message in str(caught.value)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere: cannot read the kubeconfig: No such file"):
        load_kubeconfig(VirtualClock(), str(tmp_path / "nowhere"), environ={})
    with pytest.raises(ConfigError, match="set KUBECONFIG"):
        load_kubeconfig(VirtualClock(), environ={"KUBECONFIG": str(tmp_path / "nowhere")})


def test_half_a_key_pair_and_a_wrong_one_are_told_apart(write):
    half = load_kubeconfig(
        VirtualClock(), write(config(user={"client-certificate-data": b64(CERT)})), environ={}
    )
    with pytest.raises(ConfigError, match="client-key is missing"):
        half.tls.context()
    other = trustme.CA().issue_cert("x").private_key_pem.bytes()
    user = {"client-certificate-data": b64(CERT), "client-key-data": b64(other)}
    wrong = load_kubeconfig(VirtualClock(), write(config(user=user)), environ={})
    with pytest.raises(ConfigError, match="belong together"):
        wrong.tls.context()


def test_secrets_do_not_show_in_a_printed_connection(write):
    user = {"token": "s3cr3t", "client-certificate-data": b64(CERT), "client-key-data": b64(KEY)}
    connection = load_kubeconfig(VirtualClock(), write(config(user=user)), environ={})

    async def ask():
        return await connection.credentials.current()

    assert "s3cr3t" not in repr(connection) + repr(run(ask()))
    assert "PRIVATE" not in repr(connection)


def test_a_token_file_is_read_again_after_a_minute_and_after_a_refusal(write, tmp_path):
    token = tmp_path / "tok"
    token.write_text("one")
    clock = VirtualClock()
    credentials = load_kubeconfig(clock, write(config(user={"tokenFile": "tok"})), environ={}).credentials

    async def scenario():
        seen = [(await credentials.current()).authorization]
        token.write_text("two")
        seen.append((await credentials.current()).authorization)
        await clock.sleep(61)
        seen.append((await credentials.current()).authorization)
        token.write_text("three")
        credentials.reject(await credentials.current())
        seen.append((await credentials.current()).authorization)
        token.unlink()
        credentials.reject(await credentials.current())
        seen.append((await credentials.current()).authorization)
        return seen

    assert clock.run(scenario()) == [f"Bearer {text}" for text in ("one", "one", "two", "three", "three")]


def test_an_exec_plugin_whose_tokens_are_rejected_is_run_at_a_slower_pace(write, monkeypatch):
    """It was run for every 401: 236 times in 2 minutes."""
    clock = VirtualClock()
    user = {"exec": {"command": "plugin", "apiVersion": "client.authentication.k8s.io/v1"}}
    credentials = load_kubeconfig(clock, write(config(user=user)), environ={}).credentials
    runs: list[float] = []

    async def run_plugin() -> bytes:
        runs.append(clock.monotonic())
        token = {"token": f"run-{len(runs)}"}
        kind = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1"}
        return json.dumps({**kind, "status": token}).encode()

    monkeypatch.setattr(credentials, "_run", run_plugin)

    async def scenario():
        first = await credentials.current()
        await clock.sleep(600)
        credentials.reject(first)
        second = await credentials.current()
        credentials.reject(first)  # a late answer to a request with the old token
        assert (second, await credentials.current()) == (second, second)
        assert [first.authorization, second.authorization] == ["Bearer run-1", "Bearer run-2"]
        assert runs == [0, 600], "a token that was good is renewed at once"
        for _ in range(240):
            credentials.reject(await credentials.current())
            await clock.sleep(0.5)
        assert len(runs) - 2 <= 17
        assert max(later - sooner for sooner, later in pairwise(runs[2:])) <= 10.5, (
            "a good token is found soon"
        )

    clock.run(scenario())


PLUGIN = """
import json, os, pathlib, sys
count = pathlib.Path(sys.argv[1])
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
pathlib.Path(sys.argv[1] + ".info").write_text(json.dumps({"info": info, "extra": os.environ.get("EXTRA"), "args": sys.argv[2:]}))
status = {"token": f"run-{number}"}
if len(sys.argv) > 2 and sys.argv[2].startswith("20"):
    status["expirationTimestamp"] = sys.argv[2]
print(json.dumps({"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}))
"""


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_an_exec_plugin_is_run_without_a_shell_and_told_what_it_may_know(write, tmp_path, version):
    script = write(PLUGIN, "plugin.py")
    plugin = {
        "command": sys.executable,
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "args": [script, str(tmp_path / "count"), "$(touch x); `id`"],
        "env": [{"name": "EXTRA", "value": "yes"}],
        "provideClusterInfo": True,
        "interactiveMode": "IfAvailable",
    }
    extension = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}]
    cluster = {"certificate-authority-data": b64(CA_PEM), "extensions": extension}
    connection = load_kubeconfig(VirtualClock(), write(config(cluster, {"exec": plugin})), environ={})
    assert (await connection.credentials.current()).authorization == "Bearer run-1"
    assert (await connection.credentials.current()).authorization == "Bearer run-1"
    connection.credentials.reject(await connection.credentials.current())
    assert (await connection.credentials.current()).authorization == "Bearer run-2"
    told = json.loads((tmp_path / "count.info").read_text())
    assert told["args"] == ["$(touch x); `id`"]
    assert told["extra"] == "yes"
    assert told["info"]["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://127.0.0.1:6443",
            "certificate-authority-data": b64(CA_PEM),
            "config": {"audience": "a"},
        },
    }


async def test_an_exec_credential_is_renewed_shortly_before_it_expires(write, tmp_path):
    clock = VirtualClock()
    script = write(PLUGIN, "plugin.py")
    expiry = (clock.now() + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    plugin = {
        "command": sys.executable,
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": [script, str(tmp_path / "count"), expiry],
    }
    credentials = load_kubeconfig(clock, write(config(user={"exec": plugin})), environ={}).credentials
    assert (await credentials.current()).authorization == "Bearer run-1"
    clock.advance(280)
    assert (await credentials.current()).authorization == "Bearer run-1"
    clock.advance(11)
    assert (await credentials.current()).authorization == "Bearer run-2"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param("print('hello')", "did not print an ExecCredential", id="prints text"),
        pytest.param("import sys; sys.exit(3)", "ended with exit code 3", id="fails"),
        pytest.param('print(\'{"kind":"ExecCredential"}\')', "of no version", id="no version"),
        pytest.param(
            'print(\'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{}}\')',
            "neither a token nor a client certificate",
            id="empty status",
        ),
    ],
)
async def test_a_plugin_that_misbehaves_is_named_with_its_hint(write, code, message):
    plugin = {
        "command": sys.executable,
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": ["-c", code],
        "installHint": "install\nthe new one",
    }
    connection = load_kubeconfig(VirtualClock(), write(config(user={"exec": plugin})), environ={})
    with pytest.raises(ConfigError) as caught:
        await connection.credentials.current()
    assert message in str(caught.value)
    assert str(caught.value).endswith("; install the new one")


async def test_a_plugin_that_is_not_there_is_said_so(write):
    plugin = {"command": "no-such-plugin-here", "apiVersion": "client.authentication.k8s.io/v1"}
    connection = load_kubeconfig(VirtualClock(), write(config(user={"exec": plugin})), environ={})
    with pytest.raises(ConfigError, match="is not installed"):
        await connection.credentials.current()
    plugin["command"] = "./beside"
    connection = load_kubeconfig(VirtualClock(), write(config(user={"exec": plugin})), environ={})
    with pytest.raises(ConfigError, match="cannot be started: No such file"):
        await connection.credentials.current()


async def test_a_plugin_may_give_a_client_certificate(write):
    status = {"clientCertificateData": CERT.decode(), "clientKeyData": KEY.decode()}
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    plugin = {
        "command": sys.executable,
        "apiVersion": answer["apiVersion"],
        "args": ["-c", f"print({json.dumps(answer)!r})"],
    }
    connection = load_kubeconfig(VirtualClock(), write(config(user={"exec": plugin})), environ={})
    credential = await connection.credentials.current()
    assert credential.authorization is None
    assert credential.certificate is not None
    connection.tls.context(credential.certificate)


def test_an_id_token_is_used_while_it_is_valid(write):
    clock = VirtualClock()

    def token(seconds):
        claims = json.dumps({"exp": clock.now().timestamp() + seconds}).encode()
        return "e30." + base64.urlsafe_b64encode(claims).decode().rstrip("=") + ".sig"

    good = config(user={"auth-provider": {"name": "oidc", "config": {"id-token": token(60)}}})
    assert authorization(load_kubeconfig(clock, write(good), environ={})) == f"Bearer {token(60)}"
    old = config(user={"auth-provider": {"name": "oidc", "config": {"id-token": token(-1)}}})
    with pytest.raises(ConfigError, match="has expired"):
        load_kubeconfig(clock, write(old), environ={})


def test_impersonation_goes_into_headers(write):
    connection = load_kubeconfig(
        VirtualClock(), write(config(user={"as": "jane", "as-uid": "7"})), environ={}
    )
    assert connection.headers == {"Impersonate-User": "jane", "Impersonate-Uid": "7"}


def test_in_a_pod_the_service_account_is_used(tmp_path):
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match="token is missing"):
        load_in_cluster(VirtualClock(), environ, tmp_path)
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_bytes(CA_PEM)
    (tmp_path / "namespace").write_text("trimtab")
    connection = load_in_cluster(VirtualClock(), environ, tmp_path)
    assert connection.server == "https://[fd00::1]:443"
    assert connection.namespace == "trimtab"
    assert authorization(connection) == "Bearer pod-token"
    with pytest.raises(ConfigError, match="not in a pod"):
        load_in_cluster(VirtualClock(), {}, tmp_path)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param({}, "pod", id="in a pod"),
        pytest.param({"path": True}, "file", id="a file is named"),
        pytest.param({"context": "other"}, "other", id="a context of $KUBECONFIG is named"),
        pytest.param({"environment": True}, "file", id="$KUBECONFIG is set"),
        pytest.param({"path": True, "environment": True}, "file", id="both"),
        pytest.param({"token": False}, "home", id="a pod without a token"),
        pytest.param({"host": False}, "home", id="a token without a pod"),
    ],
)
def test_which_connection_wins(given, want, write, tmp_path, monkeypatch):
    """A named file or context, else $KUBECONFIG, else the pod, else the file in the home directory."""
    (tmp_path / "ca.crt").write_bytes(CA_PEM)
    if given.get("token", True):
        (tmp_path / "token").write_text("pod")
    monkeypatch.setenv("HOME", str(tmp_path))
    environ: dict[str, str] = {}
    if given.get("host", True):
        environ |= {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    named = write(config(user={"token": "file"}))
    if given.get("environment") or given.get("context"):
        environ["KUBECONFIG"] = named
    path, context = named if given.get("path") else None, given.get("context")
    if want == "other":
        with pytest.raises(ConfigError, match="other"):
            load_connection(VirtualClock(), path, context, environ, tmp_path)
        return
    if want == "home":
        (tmp_path / ".kube").mkdir()
        (tmp_path / ".kube" / "config").write_text(Path(named).read_text().replace("file", "home"))
    connection = load_connection(VirtualClock(), path, context, environ, tmp_path)
    assert authorization(connection) == f"Bearer {want}"


def test_without_a_pod_the_kubeconfig_is_used(write):
    path = write(config(user={"token": "x"}))
    assert authorization(load_connection(VirtualClock(), environ={"KUBECONFIG": path})) == "Bearer x"


@pytest.mark.parametrize(
    ("host", "no_proxy", "excluded"),
    [
        ("api.example", "", False),
        ("api.example", "*", True),
        ("api.example", "example", True),
        ("api.example", ".example", True),
        ("api.example", "xample", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.0.0.0/16", False),
        ("127.0.0.1", "", True),
        ("localhost", "", True),
    ],
)
def test_no_proxy_lists(host, no_proxy, excluded):
    assert is_excluded(host, no_proxy) is excluded


def test_the_environments_proxy_is_used_unless_the_file_has_one():
    environ = {"HTTPS_PROXY": "corp:3128", "http_proxy": "http://plain:1"}
    assert proxy_for("https://api.example", "", environ, "x") == "http://corp:3128"
    assert proxy_for("http://api.example", "", environ, "x") == "http://plain:1"
    assert proxy_for("https://api.example", "http://mine:1", environ, "x") == "http://mine:1"


def test_no_credential_is_in_the_repr_of_a_kubeconfig():
    """Log lines and tracebacks hold the repr of values."""
    user = {
        "token": "s3cret",
        "password": "s3cret",
        "client-key-data": "s3cret",
        "exec": {"command": "plugin", "args": ["s3cret"], "env": [{"name": "TOKEN", "value": "s3cret"}]},
        "auth-provider": {"name": "oidc", "config": {"id-token": "s3cret"}},
    }
    read = msgspec.convert({"name": "me", "user": user}, NamedUser)
    assert read.user is not None
    for value in (read, read.user, read.user.exec, read.user.auth_provider):
        assert "s3cret" not in repr(value)
