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
