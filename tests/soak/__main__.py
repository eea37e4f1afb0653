"""Run a soak and print its figures: `python -m tests.soak [--days=30] [--rounds=12] [--seed=1] [--real [--minutes=60]]`.

The exit code is 1 if something grew.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import click

from tests.soak import real, report, virtual
from tests.soak.churn import Churn
from tests.soak.gauges import Gauges
from trimtab.clock import VirtualClock
from trimtab.operator import gc_tuning


def main() -> int:
    """Run the chosen soak."""
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--days", type=int, default=30, help="virtual days")
    parser.add_argument(
        "--rounds", type=int, default=virtual.Pace.rounds_per_day, help="rounds of churn a day"
    )
    parser.add_argument("--slower", type=float, default=1.0, help="times as long between two runs of a loop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", action="store_true", help="on the real API server, in real time")
    parser.add_argument("--minutes", type=float, default=60.0, help="real minutes of --real")
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)
    return soak_for_real(chosen) if chosen.real else soak_on_the_lab(chosen)


def soak_on_the_lab(chosen: argparse.Namespace) -> int:
    """Print a row per virtual day."""
    gc_tuning.collect_less_often()
    pace = replace(virtual.Pace().slower(chosen.slower), rounds_per_day=chosen.rounds)
    clock, began = VirtualClock(), time.process_time()
    click.echo(
        f"{chosen.days} virtual days, {pace.rounds_per_day} rounds of churn a day, two replicas with all components\n"
        f"{report.heading()}   CPU s",
    )

    def show(day: int, gauges: Gauges, _churn: Churn) -> None:
        click.echo(f"{report.row(day, gauges)}{time.process_time() - began:8.0f}")

    with tempfile.TemporaryDirectory(prefix="trimtab-soak-") as folder:
        counted = clock.run(
            virtual.soak(clock, Path(folder), chosen.days, seed=chosen.seed, pace=pace, each_day=show)
        )
    is_good, text = report.verdict(counted)
    click.echo(text)
    return int(not is_good)


def soak_for_real(chosen: argparse.Namespace) -> int:
    """Print a row per round and process."""
    click.echo(
        f"{chosen.minutes:g} minutes on the real API server, two processes\n{report.heading('round')}",
    )

    def show(number: int, counted: list[Gauges]) -> None:
        for name, gauges in zip("ab", counted, strict=True):
            click.echo(report.row(number, gauges, name))

    rounds = asyncio.run(real.soak(chosen.minutes, seed=chosen.seed, each_round=show))
    is_good = True
    for index, name in enumerate("ab"):
        is_fine, text = report.verdict([counted[index] for counted in rounds], "round")
        is_good = is_good and is_fine
        click.echo(f"process {name}: {text}")
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
