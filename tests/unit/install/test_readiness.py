"""The script of `helm test` succeeds when every program is ready, and says which are not."""

import subprocess
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from trimtab.install.schema import CHART

TEMPLATE = (CHART / "templates/tests/ready.yaml").read_text(encoding="utf-8")
SCRIPT = textwrap.dedent(TEMPLATE.partition("        - |\n")[2].partition("      args:\n")[0])


class Program(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Program)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(*addresses):
    command = [sys.executable, "-c", SCRIPT, *addresses]
    return subprocess.run(
        command, env={"ATTEMPTS": "1"}, capture_output=True, text=True, check=False, timeout=60
    )


def test_ready_programs_pass(address):
    done = run(f"{address}/readyz", f"{address}/readyz")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{address}/readyz 200\n" * 2


def test_a_program_that_is_not_ready_is_named(address):
    done = run(f"{address}/readyz", f"{address}/broken")
    assert done.returncode == 1
    assert f"{address}/broken HTTP Error 503" in done.stdout
    assert "1 programs are not ready" in done.stderr


def test_nothing_of_the_test_is_left_after_a_failure():
    """`helm uninstall` does not delete hooks, so that the pod of a failed test stayed in the namespace."""
    policies = [
        line.partition(": ")[2].split(",") for line in TEMPLATE.splitlines() if "hook-delete-policy" in line
    ]
    assert len(policies) == 2
    assert all({"hook-succeeded", "hook-failed"} <= set(policy) for policy in policies)
