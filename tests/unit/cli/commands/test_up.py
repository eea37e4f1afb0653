"""`trimtab up` and `lab` refuse what they cannot do, before they start anything."""

from pathlib import Path

import pytest

from trimtab.cli import answer
from trimtab_lab.kubeconfig_file import KubeconfigFile


@pytest.mark.parametrize("command", [["up", "--for", "0.1"], ["lab"]], ids=["up", "lab"])
def test_the_kubeconfig_of_another_cluster_is_not_overwritten(command, tmp_path, capsys):
    path = tmp_path / "mine"
    with KubeconfigFile(path):
        assert answer([*command, "--write-kubeconfig", str(path)]) == 2
    assert "mine belongs to a cluster that runs (name another file" in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_is_named(capsys):
    assert answer(["up", "--write-kubeconfig", "/proc/nope/kubeconfig"]) == 2
    assert "/proc/nope" in capsys.readouterr().err
    assert not Path("/proc/nope").exists()


@pytest.mark.parametrize("speed", ["fast", "0x", "1001x", "-1x"])
def test_a_speed_is_a_positive_number(speed, capsys):
    assert answer(["up", f"--speed={speed}"]) == 2
    assert "is not a speed such as 1x or 60x" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scenario=nope"], "no story 'nope'"),
        (["-f", "/nope"], "/nope"),
        (["--many=10", "-f", "x"], "cannot be combined"),
    ],
)
def test_what_cannot_be_put_up_is_refused_before_the_start(options, words, capsys):
    """Each was refused after "starting the embedded cluster"."""
    assert answer(["up", *options]) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""
