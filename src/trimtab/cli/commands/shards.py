"""`trimtab shards` shows how even the shards are, the replicas that hold them, and the seed that divides best."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import click

from trimtab.cli.columns import in_columns
from trimtab.cli.connection import (
    context_option,
    kubeconfig_option,
    request_timeout_option,
    with_client,
)
from trimtab.cli.errors import CommandError
from trimtab.cli.namespace_contents import count_cluster, counted_kinds
from trimtab.cli.operator_settings import Choice, operator_namespace_option, settings_for
from trimtab.cli.output import output_option, to_json, to_yaml
from trimtab.cli.progress import waiting
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.leases.balance import (
    LargeNamespace,
    ShardContents,
    best_layout,
    contents_of_shards,
    find_largest,
    large_namespaces,
    largest_share,
    shares,
)
from trimtab.cluster.leases.layout import MOST_SEED, MOST_SHARDS, ShardLayout
from trimtab.cluster.resource import LEASES
from trimtab.model.readable import counted
from trimtab.model.vpa.defaults import DEFAULT_RECOMMENDER
from trimtab.operator.process import shard_layout
from trimtab.operator.settings.published import FoundSettings, is_held

_RIGHTS: Final = "get that right: every namespace that the operator watches is counted"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants to see. None means what the operator uses."""

    component: str = "horizontal"
    operator_namespace: str = "trimtab"
    count: int | None = None
    seed: int | None = None
    split: tuple[str, ...] | None = None
    recommender: str = DEFAULT_RECOMMENDER
    """Which recommender, if the component is one."""

    def over(self, used: ShardLayout) -> ShardLayout:
        """Return the layout of an operator with what the user wants instead."""
        return ShardLayout(
            used.count if self.count is None else self.count,
            used.split if self.split is None else self.split,
            used.seed if self.seed is None else self.seed,
        )


@dataclass(frozen=True, slots=True)
class Report:
    """A layout, what its shards have, and the best seed."""

    component: str
    layout: ShardLayout
    holders: tuple[str, ...]
    """The holder of each shard. It is empty if no replica uses the layout."""
    contents: list[ShardContents]
    better: ShardLayout
    largest_then: float
    """The largest share with the better seed."""
    split_pods: int = 0
    """How many pods split namespaces have. They are in no shard, because every replica watches them."""
    unknown: tuple[str, ...] = ()
    """Split namespaces that the cluster does not have."""
    large: tuple[LargeNamespace, ...] = ()
    """Namespaces that no seed can divide."""
    noun: str = "HPAs"
    """What the counted autoscalers are called."""
    notes: tuple[str, ...] = ()
    """What is not known about the operator and the cluster."""


@click.command("shards")
@click.option(
    "--component",
    type=click.Choice(["horizontal", "recommender"]),
    default="horizontal",
    show_default=True,
    help="Whose shards: those of the HPAs or those of the VPAs. A process that runs both has one seed, for which both are counted.",
)
@click.option(
    "--recommender-name",
    "recommender",
    default=DEFAULT_RECOMMENDER,
    show_default=True,
    help="Which recommender, with --component=recommender.",
)
@click.option(
    "--shards",
    "count",
    type=click.IntRange(2, MOST_SHARDS),
    help="Show this number of shards, whether or not an operator uses it.",
)
@click.option("--shard-seed", "seed", type=click.IntRange(0, MOST_SEED), help="Show this seed.")
@click.option(
    "--split-namespaces",
    "split",
    multiple=True,
    help="Show these namespaces split, separated by commas.",
)
@output_option("table", "json", "yaml")
@operator_namespace_option
@request_timeout_option
@kubeconfig_option
@context_option
def shards(  # noqa: PLR0913 - one parameter per option
    *,
    component: str,
    recommender: str,
    count: int | None,
    seed: int | None,
    split: tuple[str, ...],
    output: str,
    operator_namespace: str,
    request_timeout: timedelta | None,
    kubeconfig: str,
    context: str,
) -> None:
    """Show how even the shards of an operator are, and their holders.

    If another --shard-seed divides the autoscalers and pods of this cluster better, it is named. So are namespaces
    that are too large for any seed.
    """
    wanted = Wanted(component, operator_namespace, count, seed, _names(split), recommender)

    async def act(client: Client, _namespace: str) -> Report:
        return await make_report(client, wanted)

    with waiting("counting autoscalers and pods"):
        report = with_client(kubeconfig, context, act, timeout=request_timeout, forbidden_hint=_RIGHTS)
    for note in report.notes:
        click.echo(note, err=True)
    click.echo(text_of(report, output), nl=False)


def _names(split: Sequence[str]) -> tuple[str, ...] | None:
    return tuple(name for text in split for name in text.split(",") if name) if split else None


async def make_report(client: Client, wanted: Wanted) -> Report:
    """Read the cluster. Raise CommandError if there are no shards to show."""
    name = wanted.recommender if wanted.component == "recommender" else ""
    found = await settings_for(client, wanted.component, Choice(wanted.operator_namespace), recommender=name)
    used = shard_layout(found.settings.leases)
    layout = wanted.over(used)
    if layout.count == 1:
        reason = "because the operator has none" if found.is_published else found.source
        raise CommandError(
            f"there are no shards to show, {reason}",
            "to see what shards would have, name how many: --shards=4",
        )
    is_used = found.is_published and layout.mark == used.mark
    holders = await _holders(client, found, layout.count) if is_used else ()
    kinds = counted_kinds(wanted.component, wanted.recommender, found)
    counts = await count_cluster(client, kinds, found.settings.watch_namespaces)
    cluster = counts.namespaces
    better = best_layout(layout, cluster)
    assumed = () if found.is_published else (f"what the operator uses is not known, {found.source}",)
    return Report(
        wanted.component,
        layout,
        holders,
        contents_of_shards(layout, cluster),
        better,
        largest_share(contents_of_shards(better, cluster)),
        split_pods=sum(cluster[name].pods for name in layout.split if name in cluster),
        unknown=tuple(sorted(name for name in layout.split if name not in cluster)),
        large=large_namespaces(layout, cluster),
        noun=kinds.noun,
        notes=(*assumed, *counts.notes),
    )


async def _holders(client: Client, found: FoundSettings, count: int) -> tuple[str, ...]:
    """Return the holder of each shard of the operator whose settings were found on one of their Leases.

    A holder that does not renew its Lease any more is none.
    """
    lease = found.lease
    if lease is None:
        return ()
    stem = lease.metadata.name.rpartition("-")[0]
    listed = await client.list(LEASES, ListOptions(lease.metadata.namespace))
    now = client.clock.now()
    by_name = {
        lease.metadata.name: lease.spec.holder_identity for lease in listed.items if is_held(lease, now)
    }
    return tuple(by_name.get(f"{stem}-{number}") or "" for number in range(count))


def text_of(report: Report, output: str) -> str:
    """Return the report as a table with advice, or as data."""
    if output == "table":
        return "\n".join([*_table(report), *_advice(report), ""])
    return to_json(_data(report)) if output == "json" else to_yaml(_data(report))


def _table(report: Report) -> list[str]:
    autoscalers = report.noun.lower()
    rows = [
        {
            "shard": str(number),
            "namespaces": f"{shard.namespaces:,}",
            autoscalers: f"{shard.autoscalers:,}",
            "pods": f"{shard.pods:,}",
            "share": f"{share:.2f}",
        }
        for number, (shard, share) in enumerate(
            zip(report.contents, shares([shard.pods for shard in report.contents]), strict=True)
        )
    ]
    for row, holder in zip(rows, report.holders, strict=False):
        row["holder"] = holder or "-"
    return in_columns(list(rows[0]), rows)


def _advice(report: Report) -> list[str]:
    layout, better, noun = report.layout, report.better, report.noun
    lines = []
    if report.split_pods:
        lines.append(
            f"not counted: {counted(report.split_pods, 'pod')} of split namespaces, which every replica watches"
        )
    if report.unknown:
        lines.append(f"not in this cluster: {', '.join(report.unknown)} of --split-namespaces")
    if orphans := [str(number) for number, holder in enumerate(report.holders) if not holder]:
        shard = f"shard {orphans[0]}" if len(orphans) == 1 else f"shards {', '.join(orphans)}"
        lines.append(f"no replica holds {shard}: nothing is decided about the {noun} there")
    largest = find_largest(report.contents)
    if not largest.share:
        return [*lines, f"there are no pods and no {noun} to divide"]
    of = "pods" if largest.is_of_pods else noun
    lines.append(
        f"the largest share is {largest.share:.2f} of the {of} (shard {largest.shard}) "
        f"with --shard-seed={layout.seed}, an even one {1 / layout.count:.2f}"
    )
    if better.seed != layout.seed:
        lines.append(
            f"--shard-seed={better.seed} in all replicas would make the largest share {report.largest_then:.2f}"
        )
    return [*lines, *_large(report)]


def _large(report: Report) -> list[str]:
    """Return lines about namespaces that no seed can divide."""
    if not report.large:
        return []
    named = [
        f"{large.name} ({large.share:.2f} of the {'pods' if large.is_of_pods else report.noun})"
        for large in report.large
    ]
    lines = [f"too large for an even share, with any seed: {', '.join(named)}"]
    if names := [large.name for large in report.large if large.can_be_split]:
        split = ",".join(sorted({*report.layout.split, *names}))
        its = "its" if len(names) == 1 else "their"
        lines.append(
            f"--split-namespaces={split} in all replicas would divide {its} {report.noun} by name; every replica then "
            f"watches {its} pods"
        )
    return lines


def _data(report: Report) -> dict[str, Any]:
    layout, holders = report.layout, report.holders
    return {
        "component": report.component,
        "seed": layout.seed,
        "splitNamespaces": sorted(layout.split),
        "largestShare": largest_share(report.contents),
        "shards": [
            {
                "shard": number,
                "namespaces": shard.namespaces,
                "autoscalers": shard.autoscalers,
                "pods": shard.pods,
                **({"holder": holders[number]} if holders else {}),
            }
            for number, shard in enumerate(report.contents)
        ],
        "betterSeed": report.better.seed,
        "largestShareThen": report.largest_then,
        "largeNamespaces": [large.name for large in report.large],
    }
