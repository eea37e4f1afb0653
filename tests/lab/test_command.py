"""`trimtab lab` from outside: it listens on loopback, writes a private kubeconfig, and ends on a signal."""

import signal
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64decode

import pytest
import yaml

PROGRAM = [sys.executable, "-c", "from trimtab.cli import main; main()", "lab"]


@pytest.fixture
def command(tmp_path):
    """A running `trimtab lab` and the path of its kubeconfig."""
    path = tmp_path / "deep" / "kubeconfig"
    with subprocess.Popen(
        [*PROGRAM, "--write-kubeconfig", str(path)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
        yield process, path, "".join(lines)
        process.terminate()


def get(config, path, token=None, host=None):
    cluster = config["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {token or config['users'][0]['user']['token']}"}
    if host:
        headers["Host"] = host
    request = urllib.request.Request(cluster["server"] + path, headers=headers)
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def test_the_lab_answers_its_own_token_only_and_ends_with_the_signal(command):
    process, path, said = command
    config = yaml.safe_load(path.read_text())
    assert f"kubectl --kubeconfig {path} get namespaces" in said
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert config["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert get(config, "/api/v1/namespaces") == 200
    assert get(config, "/api/v1/namespaces", token="guess") == 401
    assert get(config, "/api/v1/namespaces", host="evil.example") == 421
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def test_a_port_in_use_is_said_in_one_line(command):
    _, path, _ = command
    port = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"].rpartition(":")[2]
    done = subprocess.run(
        [*PROGRAM, "--port", port, "--write-kubeconfig", str(path.parent / "other")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "cannot listen on" in done.stderr
    assert "Traceback" not in done.stderr
