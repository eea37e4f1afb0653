"""`trimtab dashboard` starts the page with the settings of its options."""

import os
import signal
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.unit.cli.api_server import kubeconfig
from trimtab.cli.commands import dashboard
from trimtab.operator.settings.settings import Settings


@pytest.mark.parametrize(
    ("options", "plugins"),
    [([], ()), (["--plugins", "example.com/A,example.com/B"], ("example.com/A", "example.com/B"))],
)
def test_it_loads_the_plugins_that_are_named_and_no_other(options, plugins, monkeypatch):
    started: list[Settings] = []
    monkeypatch.setattr(dashboard, "start", lambda settings, _terminal: started.append(settings))
    result = CliRunner().invoke(dashboard.dashboard, options)
    assert result.exit_code == 0, result.output
    assert [settings.plugins for settings in started] == [plugins]


def test_the_terminal_shows_which_cluster_is_read_and_why_it_cannot_be(tmp_path):
    """Only the page said so."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and never listens
        port = bound.getsockname()[1]
        command = [sys.executable, "-m", "trimtab", "dashboard", "--kubeconfig", kubeconfig(tmp_path, port)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            address = running.stdout.readline()
            cluster, problem = running.stderr.readline(), running.stderr.readline()
            running.send_signal(signal.SIGINT)
    assert cluster == f"reading the cluster at http://127.0.0.1:{port} ...\n"
    assert address.startswith("dashboard: http://127.0.0.1:")
    why = f"cannot connect to 127.0.0.1:{port}: Connection refused. Trying again ..."
    assert problem == f"trimtab: the cluster cannot be reached: {why}\n"


def test_the_terminal_shows_that_the_cluster_answers_again(capsys):
    dashboard.Terminal().show_connection("")
    assert capsys.readouterr() == ("", "the cluster answers again\n")
