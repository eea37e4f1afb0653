"""Fuzz every way in: `python -m tests.fuzz [--minutes=10 | --runs=N] [--target=NAME]... [--seed=N] [--engine=atheris]`.

Inputs that break a property are written to `tests/data/fuzz/TARGET`, where the tests run them from then on; with `--keep` also those that
reached new code. The exit code is 1 if a property broke.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from tests.fuzz import engine
from tests.fuzz.targets import DATA, TARGETS, disable_logs


def main() -> int:
    """Fuzz the chosen targets one after the other, and print a line for each."""
    chosen = _arguments()
    names = chosen.target or list(TARGETS)
    if chosen.engine == "atheris":
        return _run_atheris(names, chosen)
    disable_logs()
    failed = False
    click.echo(
        f"{'target':12} {'runs':>9} {'inputs kept':>12} {'steps covered':>14} {'most lines':>11}  findings"
    )
    for name in names:
        result = engine.fuzz(
            TARGETS[name].run,
            TARGETS[name].seeds(name),
            words=TARGETS[name].words,
            seed=chosen.seed,
            goes_on=_limit(chosen, len(names)),
        )
        found = len(result.findings)
        click.echo(f"{name:12} {result.runs:9,} {len(result.kept):12,} {result.steps:14,} {result.most_lines:11,}  {found or '-'}")  # fmt: skip
        for finding in result.findings:
            failed = True
            path = _keep(name, finding.data, "found")
            click.echo(f"  {path}: {type(finding.error).__name__}: {finding.error}")
        for data in result.kept if chosen.keep else ():
            _keep(name, data, "kept")
    return int(failed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--runs", type=int, default=0, help="for each target, instead of a time")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep inputs that reached new code")
    parser.add_argument("--engine", choices=("own", "atheris"), default="own")
    return parser.parse_args()


def _limit(chosen: argparse.Namespace, targets: int) -> Callable[[int], bool]:
    if chosen.runs:
        return lambda runs: runs < chosen.runs
    end = time.monotonic() + chosen.minutes * 60 / targets
    return lambda _runs: time.monotonic() < end


def _keep(name: str, data: bytes, kind: str) -> Path:
    path = DATA / name / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _run_atheris(names: list[str], chosen: argparse.Namespace) -> int:
    """Let libFuzzer run each target in a process of its own, which it ends at the first finding."""
    code = 0
    for name in names:
        limit = (
            f"-runs={chosen.runs}"
            if chosen.runs
            else f"-max_total_time={chosen.minutes * 60 / len(names):.0f}"
        )
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.with_atheris",
            name,
            limit,
            f"-seed={chosen.seed}",
            f"-max_len={engine.MAX_INPUT}",
            f"-artifact_prefix={DATA / name}/found-",
        ]
        # libFuzzer writes what reached new code into the first folder; only findings belong to the kept inputs.
        with tempfile.TemporaryDirectory(prefix="trimtab-fuzz-") as corpus:
            run = subprocess.run([*command, corpus, str(DATA / name)], check=False)
        code = max(code, run.returncode)
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(main())
