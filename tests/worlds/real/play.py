"""Plays random worlds beside the real controllers, and tells those in which ours is worse: `python -m tests.worlds --real`."""

import argparse
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click
import uvloop

from tests.worlds.real import judge, vpa_batch, vpas
from tests.worlds.real.batch import Batch
from tests.worlds.real.metrics import Server
from tests.worlds.real.profiles import KNOWN, Profile, draw_profile
from tests.worlds.real.server import UPSTREAM_VPA, VALUES, Api, audit_flags
from tools.peers import build
from tools.peers.beside import Beside
from tools.peers.cluster import RealCluster

OUT = Path(".trimtab/worlds")
USUAL = (None, "sync5", "real", "vpas")
"""The profile that the seed draws, mostly of syncs of 1 s, then syncs of 5 and 15 s, then VPAs."""
PROFILES = (
    "plain", "kill", "takeover", "api", "api429", "slow", "sync5", "real", "real-kill", "real-takeover", "vpas"
)  # fmt: skip
_REPLAYS = 3

Plan = tuple[Profile | vpas.Profile, Sequence[str]]
"""What befalls the programs, and the names of worlds."""
Play = Callable[[Profile | vpas.Profile, Sequence[str], int], Awaitable[Path]]
"""Plays worlds, each so often at once, and returns the file of what came of them."""
ITEMS = {name: known.item for name, known in KNOWN.items()} | {
    name: item for name, (item, _) in vpas.KNOWN.items()
}
"""The review item of each known defect's world."""


def main(arguments: list[str]) -> int:
    """Play worlds on a real API server, print the stories, and return 1 if some outcome of ours is worse."""
    parser = argparse.ArgumentParser("python -m tests.worlds --real", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first batch; default 1")
    parser.add_argument("--count", type=int, default=0, help="of batches; default four of different profiles")
    parser.add_argument("--worlds", type=int, default=12, help="of a batch; default 12")
    parser.add_argument("--profile", help=f"one of {', '.join(PROFILES)}; default: by seed")
    parser.add_argument(
        "--only",
        "--world",
        default="",
        metavar="WORLD,...",
        help=f"such as 21.3; known defects: {', '.join(ITEMS)}",
    )
    parser.add_argument(
        "--repeat", type=int, default=1, help="how often each world is played at once; 3 for a verdict"
    )
    parser.add_argument("--out", type=Path, default=OUT, help=f"directory of records and logs; default {OUT}")
    parser.add_argument(
        "--read", type=Path, nargs="+", metavar="FILE", help="judge these records, and play nothing"
    )
    parser.add_argument("--story", metavar="WORLD", help="with --read: tell this world")
    options = parser.parse_args(arguments)
    if options.read:
        lines, is_worse = judge.report(options.read, ITEMS)
        click.echo("\n".join(judge.stories(options.read, options.story) if options.story else lines))
        return int(is_worse)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    files = uvloop.run(_play_all(list(_plans(options)), options.repeat, out))
    lines, is_worse = judge.report(files, ITEMS)
    click.echo("\n".join(lines))
    click.echo(f"one of these worlds in full: --read {' '.join(map(str, files))} --story WORLD")
    return int(is_worse)


def _plans(options: argparse.Namespace) -> Iterable[Plan]:
    if options.only:
        by_batch: dict[tuple[str, str | None], list[str]] = {}
        for name in options.only.split(","):
            profile = KNOWN[name].profile if name in KNOWN else options.profile
            by_batch.setdefault((name.partition(".")[0], profile), []).append(name)
        for (batch, profile), names in by_batch.items():
            yield vpas.draw_profile(batch) if batch.startswith("v") else draw_profile(batch, profile), names
        return
    count = options.count or (1 if options.profile else 0)
    for number, profile in enumerate([options.profile] * count or USUAL, options.seed):
        is_of_vpas = profile == "vpas"
        batch = f"v{number}" if is_of_vpas else str(number)
        drawn = vpas.draw_profile(batch) if is_of_vpas else draw_profile(batch, profile)
        yield drawn, [f"{batch}.{each}" for each in range(options.worlds)]


@asynccontextmanager
async def arena(out: Path) -> AsyncIterator[Play]:
    """Start a real API server, and yield a function that plays worlds on it."""
    build.ensure(list(build.PROGRAMS))
    with tempfile.TemporaryDirectory(prefix="worlds-") as scratch:
        directory = Path(scratch)
        cluster = RealCluster(directory, apiserver_args=audit_flags(directory), users=[UPSTREAM_VPA])
        with cluster, Beside(cluster, directory) as beside:
            beside.install(VALUES, 0)
            async with Api(cluster) as api, Server(api, directory) as metrics:

                async def play(profile: Profile | vpas.Profile, names: Sequence[str], replays: int) -> Path:
                    if isinstance(profile, vpas.Profile):
                        return await vpa_batch.play(beside, api, metrics, profile, names, replays, out)
                    return await Batch(beside, api, metrics, profile, out).play(names, replays)

                yield play


async def _play_all(plans: Iterable[Plan], repeat: int, out: Path) -> list[Path]:
    """Play each plan, then the worlds again in which ours was worse once; return the records."""
    files: list[Path] = []
    async with arena(out) as play:
        for profile, names in plans:
            click.echo(f"{', '.join(names)}: {profile.tell()}")
            files.append(await play(profile, names, repeat))
            flagged = judge.flagged(files[-1])
            if flagged and repeat < _REPLAYS:
                click.echo(f"again, {_REPLAYS} times: {', '.join(flagged)}")
                files.append(await play(profile, flagged, _REPLAYS))
    return files
