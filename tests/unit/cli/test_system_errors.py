"""What the system refuses is called by its name, with what to do and an exit code of its own."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trimtab.cli.errors import CANNOT_READ, OUT_OF_RESOURCES, CommandError
from trimtab.cli.output import write_file
from trimtab.serving.files import replace_file

PROGRAM = [sys.executable, "-c", "from trimtab.cli import main; main()"]


def run(
    *arguments: str, limit: tuple[int, int] | None = None, out: str = os.devnull, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with a limit of the process, and its output in a file."""
    prepare: Callable[[], None] | None = None
    if limit is not None:
        kind, amount = limit
        prepare = lambda: resource.setrlimit(kind, (amount, amount))  # noqa: E731 - runs in the child
    # Under a limit of the file size Python would keep modules that it compiled only in part.
    environment = os.environ | {"KUBECONFIG": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"}
    with Path(out).open("w") as stdout:
        return subprocess.run(
            [*PROGRAM, *arguments],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            preexec_fn=prepare,
            env=environment,
            cwd=cwd,
            timeout=120,
        )


def one_line_without_defect(done: subprocess.CompletedProcess[str]) -> str:
    assert "defect" not in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["install", "--only=crds"], id="crds"),
        pytest.param(["install"], id="install"),
        pytest.param(["completion", "bash"], id="completion"),
    ],
)
def test_a_full_disk_behind_standard_output_is_named(arguments):
    """It was "defect: OSError ... please report it", with exit code 70."""
    done = run(*arguments, out="/dev/full")
    assert "No space left on device" in one_line_without_defect(done)
    assert "free some space" in done.stderr
    assert done.returncode == OUT_OF_RESOURCES


@pytest.mark.parametrize("count", [12, 24, 32])
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["run"], id="run"),
        pytest.param(["lab"], id="lab"),
        pytest.param(["up"], id="up"),
        pytest.param(["dashboard"], id="dashboard"),
    ],
)
def test_too_few_open_files_are_named_at_the_start(arguments, count, tmp_path):
    """12 were "Cannot close a running event loop", 24 an IndexError, 32 "cannot listen on ...: No usable ..."."""
    done = run(*arguments, limit=(resource.RLIMIT_NOFILE, count), cwd=tmp_path)
    assert f"only {count} open files are allowed" in one_line_without_defect(done)
    assert "ulimit -n" in done.stderr
    assert done.returncode == OUT_OF_RESOURCES


@pytest.mark.parametrize("command", ["lab", "up"])
def test_a_kubeconfig_that_does_not_fit_is_named_and_leaves_nothing_behind(command, tmp_path):
    """It was "cannot listen on ...: File too large (try --port 0)", and half a file with a token stayed."""
    done = run(
        *(command, "--port", "0", "--write-kubeconfig", "kubeconfig"),
        limit=(resource.RLIMIT_FSIZE, 1024),
        cwd=tmp_path,
    )
    assert "File too large" in one_line_without_defect(done)
    assert "listen" not in done.stderr
    assert done.returncode == OUT_OF_RESOURCES
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_taken_is_still_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("lab", "--port", str(port), cwd=tmp_path)
    assert f"cannot listen on 127.0.0.1:{port}" in one_line_without_defect(done)
    assert done.returncode != 0


WRITERS = {
    "cli": "from trimtab.cli.output import write_file; write_file(Path('file'), b'x' * 5000)",
    "private": "from trimtab.serving.tls import write_private; write_private(Path('file'), 'x' * 5000)",
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("before", [None, "old"], ids=["no file before", "a file before"])
def test_a_file_is_written_whole_or_not_at_all(writer, before, tmp_path):
    if before is not None:
        (tmp_path / "file").write_text(before)
    limit = (
        "import sys, resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)); from pathlib import Path;"
        "sys.dont_write_bytecode = True;"
    )
    done = subprocess.run(
        [sys.executable, "-c", limit + WRITERS[writer]], capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode != 0
    assert [file.name for file in tmp_path.iterdir()] == ([] if before is None else ["file"])
    assert before is None or (tmp_path / "file").read_text() == before


def test_a_new_file_gets_the_usual_rights_and_an_old_one_keeps_its_own(tmp_path):
    new, old, link = tmp_path / "new", tmp_path / "old", tmp_path / "link"
    old.touch(mode=0o640)
    link.symlink_to(old)
    replace_file(new, b"x")
    replace_file(link, b"y")
    plain = tmp_path / "plain"
    plain.touch()
    assert new.stat().st_mode == plain.stat().st_mode
    assert (old.stat().st_mode & 0o777, old.read_bytes(), link.is_symlink()) == (0o640, b"y", True)


def test_a_missing_directory_is_wrong_usage(tmp_path):
    with pytest.raises(CommandError, match=r"cannot write .*no/file: No such file or directory") as raised:
        write_file(tmp_path / "no/file", b"")
    assert raised.value.exit_code == CANNOT_READ


def test_a_device_that_is_full_is_no_missing_directory():
    with pytest.raises(CommandError, match="cannot write /dev/full: No space left on device") as raised:
        write_file(Path("/dev/full"), b"x")
    assert raised.value.exit_code == OUT_OF_RESOURCES
