"""`make up ARGS=--real`: a story on the real kube-apiserver, as a newcomer with Go sees it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]


def test_a_story_runs_on_the_real_api_server_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "tools.real_up", "--real", "--scenario", "same-labels", "--for", "20"]
    done = subprocess.run(
        [*command, "--write-kubeconfig", str(tmp_path / "kubeconfig")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"Trimtab is up: https://\S+, kube-apiserver 1\.\d+\.\d+,", done.stdout)
    # The first decision is about real samples: the Job's pod is counted, and no warning was logged.
    assert "same-labels/shop-by-label: 2 -> " in done.stdout
    assert done.stderr == ""
    port = re.search(r"https://127\.0\.0\.1:(\d+)", done.stdout)
    assert port
    listening = subprocess.run(["pgrep", "-f", f"secure-port={port[1]}"], capture_output=True, check=False)
    assert listening.stdout == b""
