"""`trimtab shards` lists the shards of an operator and the replicas that hold them."""

from datetime import timedelta
from typing import Any

import click

from trimtab.cli.columns import in_columns
from trimtab.cli.connection import (
    context_option,
    kubeconfig_option,
    request_timeout_option,
    with_client,
)
from trimtab.cli.errors import CommandError
from trimtab.cli.operator_settings import Choice, operator_namespace_option, settings_for
from trimtab.cli.output import output_option, to_json, to_yaml
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import LEASES
from trimtab.model.vpa.defaults import DEFAULT_RECOMMENDER
from trimtab.operator.settings.published import is_held

HOLDERS = dict[str, str]
"""The replica that holds each Lease, empty if none renews it."""


@click.command("shards")
@click.option(
    "--component",
    type=click.Choice(["horizontal", "recommender"]),
    default="horizontal",
    show_default=True,
    help="Whose shards: those of the HPAs or those of the VPAs.",
)
@click.option(
    "--recommender-name",
    "recommender",
    default=DEFAULT_RECOMMENDER,
    show_default=True,
    help="Which recommender, with --component=recommender.",
)
@output_option("table", "json", "yaml")
@operator_namespace_option
@request_timeout_option
@kubeconfig_option
@context_option
def shards(
    *,
    component: str,
    recommender: str,
    output: str,
    operator_namespace: str,
    request_timeout: timedelta | None,
    kubeconfig: str,
    context: str,
) -> None:
    """List the shards of an operator and their holders.

    Without --shards there is one, which the leader holds.
    """

    async def act(client: Client, _namespace: str) -> HOLDERS:
        return await find_holders(client, operator_namespace, component, recommender)

    holders = with_client(kubeconfig, context, act, timeout=request_timeout)
    click.echo(text_of(component, holders, output), nl=False)


async def find_holders(client: Client, namespace: str, component: str, recommender: str) -> HOLDERS:
    """Return the holder of each shard, by its Lease. Raise CommandError if no operator is known."""
    name = recommender if component == "recommender" else ""
    found = await settings_for(client, component, Choice(namespace), recommender=name)
    if found.lease is None:
        raise CommandError(f"there are no shards to show, {found.source}")
    stem = found.lease.metadata.name.rpartition("-")[0]
    listed = await client.list(LEASES, ListOptions(namespace))
    now = client.clock.now()
    held = {lease.metadata.name: lease.spec.holder_identity for lease in listed.items if is_held(lease, now)}
    leases = [f"{stem}-{number}" for number in range(found.settings.leases.shards)]
    return {lease: held.get(lease, "") for lease in leases}


def text_of(component: str, holders: HOLDERS, output: str) -> str:
    """Return the holders as a table with what is wrong, or as data."""
    if output != "table":
        rows: list[dict[str, Any]] = [
            {"shard": number, "lease": lease, "holder": holder}
            for number, (lease, holder) in enumerate(holders.items())
        ]
        data = {"component": component, "shards": rows}
        return to_json(data) if output == "json" else to_yaml(data)
    lines = in_columns(
        ["shard", "lease", "holder"],
        [
            {"shard": str(number), "lease": lease, "holder": holder or "-"}
            for number, (lease, holder) in enumerate(holders.items())
        ],
    )
    orphans = [str(number) for number, holder in enumerate(holders.values()) if not holder]
    if orphans:
        shard = f"shard {orphans[0]}" if len(orphans) == 1 else f"shards {', '.join(orphans)}"
        lines.append(f"no replica holds {shard}: nothing is decided about its objects")
    return "\n".join([*lines, ""])
