"""A real PostgreSQL server for tests, on a Unix socket in a temporary directory."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("/usr/lib/postgresql/*/bin", "/usr/local/bin", "/usr/local/pgsql/bin")
USER = "postgres"


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server while the context lasts and yield its address. Skip the test where there is no PostgreSQL."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: make .venv/.dev")
    initdb, server = _program("initdb"), _program("postgres")
    if initdb is None or server is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # A path of at most 107 bytes: a socket has no more.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    data = folder / "data"
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            owner = pwd.getpwnam(USER)
        except KeyError:
            pytest.skip(f"PostgreSQL cannot run as root, and there is no user {USER}")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    try:
        subprocess.run(
            [initdb, "--no-sync", "--auth=trust", f"--username={USER}", f"--pgdata={data}"],
            check=True, capture_output=True, cwd=folder, **as_user,
        )  # fmt: skip
        log = (folder / "log").open("wb")
        process = subprocess.Popen(
            [server, "-D", str(data), "-k", str(folder), "-c", "listen_addresses=", "-c", "fsync=off"],
            stdout=log, stderr=log, cwd=folder, **as_user,
        )  # fmt: skip
        try:
            dsn = f"postgresql://{USER}@/postgres?host={folder}"
            _wait(dsn, process, folder / "log")
            yield dsn
        finally:
            process.terminate()
            process.wait(timeout=30)
            log.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def execute(dsn: str, *statements: str) -> None:
    """Run statements in one transaction."""
    import psycopg

    with psycopg.connect(dsn) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _program(name: str) -> str | None:
    places = [str(path) for pattern in PROGRAMS for path in sorted(Path("/").glob(pattern[1:]), reverse=True)]
    return shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))


def _wait(dsn: str, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    for _ in range(300):
        assert process.poll() is None, log.read_text()
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            time.sleep(0.1)  # the server is starting
        else:
            return
    raise AssertionError(f"PostgreSQL does not answer: {log.read_text()}")
