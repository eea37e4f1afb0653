"""Programs of two releases are kept apart, and those of the older layout are not built again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.peers import build

SERVER = "kube-apiserver"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEERS_BIN", str(tmp_path / "peers"))
    monkeypatch.setenv("K8S", "1.36")
    (tmp_path / "peers").mkdir()
    return tmp_path / "peers"


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_only_programs_of_kubernetes_are_kept_by_release(cache, monkeypatch):
    assert build.place_of(SERVER) == cache / "kubernetes-1.36.3" / SERVER
    assert build.place_of("etcd") == cache / "etcd"
    monkeypatch.setenv("K8S", "1.37")
    assert build.place_of(SERVER) == cache / "kubernetes-1.37.1" / SERVER
    assert build.place_of("etcd") == cache / "etcd"


def test_a_program_of_the_older_layout_moves_to_its_release(cache, monkeypatch):
    before = program(cache / SERVER, "Kubernetes v1.36.3")
    monkeypatch.setenv("K8S", "1.37")
    assert build.find(SERVER) is None, "it is of another release"
    monkeypatch.setenv("K8S", "1.36")
    assert build.find(SERVER) == cache / "kubernetes-1.36.3" / SERVER
    assert not before.exists()


def test_a_program_of_the_release_stays_beside_one_of_the_older_layout(cache):
    before = program(cache / SERVER, "Kubernetes v1.36.3")
    built = program(cache / "kubernetes-1.36.3" / SERVER, "built")
    assert build.find(SERVER) == built
    assert before.exists()
    assert "built" in built.read_text()


GO = """#!/bin/sh
# Stands in for the compiler: it writes what `-o` names, after the test let it.
echo "$1" >> "$GO_CALLS"
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then cat "$GO_GATE" 2>/dev/null; echo program > "$2"; fi
  shift
done
"""


def test_two_processes_build_a_program_once(cache, tmp_path):
    program(tmp_path / "bin" / "go", "").write_text(GO)
    calls, gate = tmp_path / "calls", tmp_path / "gate"
    os.mkfifo(gate)
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    environment |= {"GO_CALLS": str(calls), "GO_GATE": str(gate)}
    command = [sys.executable, "-m", "tools.peers.build", "etcd"]
    builders = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert all("building etcd" in (builder.stdout or sys.stdin).readline() for builder in builders)
    gate.write_text("")
    gate.unlink()
    answers = [builder.communicate(timeout=60)[0] for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    assert all(answer.splitlines()[-1] == str(cache / "etcd") for answer in answers)
    assert calls.read_text().split().count("build") == 1


FAILING_GO = """#!/bin/sh
if [ "$1 $2" = "mod download" ] || [ "$1" = list ]; then echo "$GO_SAYS" >&2; exit 1; fi
"""


@pytest.mark.parametrize(
    ("go_says", "is_error"),
    [
        ("reading https://proxy/v1.37.9999.info: 404 Not Found: unknown revision v1.37.9999", True),
        ("reading https://proxy/v1.37.9999.info: 403 Forbidden: This version is not available.", True),
        ("no required module provides package k8s.io/kubernetes/cmd/kubectl", True),
        ('Get "https://proxy/v1.37.9999.info": dial tcp 127.0.0.1:1: connect: connection refused', False),
        ('Get "https://proxy/x": dial tcp: lookup proxy on 127.0.0.1:53: no such host', False),
        ("reading https://proxy/v1.37.9999.info: 503 Service Unavailable", False),
        ("module lookup disabled by GOPROXY=off", False),
    ],
)
def test_a_release_that_does_not_exist_is_an_error_and_a_missing_network_is_none(
    cache, tmp_path, go_says, is_error
):
    """Both were reported as skipped, without Go's words, and a folder of the release stayed."""
    program(tmp_path / "bin" / "go", "").write_text(FAILING_GO)
    program(cache / "etcd", "etcd")
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "GO_SAYS": go_says}
    command = [sys.executable, "-m", "tools.real", "tests/unit/peers/test_build.py"]
    ran = subprocess.run(
        command, env=environment | {"K8S": "1.37.9999"}, capture_output=True, text=True, check=False
    )
    assert (ran.returncode != 0) == is_error, ran
    assert ("SKIPPED, nothing was run" in ran.stdout) != is_error
    assert go_says in ran.stdout + ran.stderr
    assert ("choose with K8S: 1.37, 1.36" in ran.stderr) == is_error
    assert not (cache / "kubernetes-1.37.9999").exists()


def test_a_machine_without_go_runs_nothing_and_says_so(cache, tmp_path):
    environment = os.environ | {"PATH": str(tmp_path), "K8S": "1.37.9999"}
    command = [sys.executable, "-m", "tools.real", "tests/unit/peers/test_build.py"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert "there is no `go` to build with" in ran.stdout
