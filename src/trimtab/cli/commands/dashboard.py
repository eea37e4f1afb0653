"""`trimtab dashboard` shows a cluster's autoscalers in a browser. It is read-only and uses the user's own rights."""

import click

from trimtab.cli.commands.run import start
from trimtab.cli.connection import context_option, kubeconfig_option
from trimtab.cli.errors import CommandError, one_line
from trimtab.cli.names import complete_namespace
from trimtab.cli.operator_settings import GATES, operator_namespace_option
from trimtab.cli.parameters import ListOption, Names, plugins_option
from trimtab.operator.settings.settings import Settings


@click.command("dashboard")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    cls=ListOption,
    type=Names(),
    default="",
    shell_complete=complete_namespace,
    help="Only this namespace; may be given several times.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the page; 0 picks a free one."
)
@click.option(
    "--native-hpas", is_flag=True, help="Show autoscaling/v2 objects too, as Trimtab would decide on them."
)
@click.option(
    "--native-vpas",
    is_flag=True,
    help="Show autoscaling.k8s.io objects too, where the operator's settings cannot be read.",
)
@click.option(
    "--feature-gates",
    cls=ListOption,
    default=GATES,
    show_default=True,
    help="Gates to decide with where the operator's cannot be read.",
)
@click.option(
    "--compat",
    cls=ListOption,
    default="",
    help="Decide as upstream does where the operator's settings cannot be read.",
)
@plugins_option
@operator_namespace_option
@kubeconfig_option
@context_option
def dashboard(
    namespaces: tuple[str, ...],
    port: int,
    native_hpas: bool,
    native_vpas: bool,
    operator_namespace: str,
    plugins: tuple[str, ...],
    **options: str,
) -> None:
    """Show all autoscalers of a cluster in a browser. Nothing is installed there and nothing is written."""
    settings = Settings.of(
        components=("dashboard",),
        watch_namespaces=namespaces,
        feature_gates=options["feature_gates"],
        compat=options["compat"],
        native_hpas=native_hpas,
        native_vpas=native_vpas,
        plugins=plugins,
        kubeconfig=options["kubeconfig"],
        context=options["context"],
        leader_elect_resource_namespace=operator_namespace,
        port=0,
        dashboard_port=port,
        dashboard_login="token",
    )
    from trimtab.serving.server import ListenError  # noqa: PLC0415 - imported when it runs, so that --help is quick

    try:
        start(settings, Terminal())
    except ListenError as error:
        raise CommandError(f"cannot listen: {error.strerror or error}", "try --port 0") from error


class Terminal:
    """Shows what happens to the user who started the dashboard."""

    def show_server(self, server: str) -> None:
        """Show which cluster is read, on standard error: scripts take the address of the page from the first line."""
        click.echo(f"reading the cluster at {server} ...", err=True)

    def show_address(self, address: str) -> None:
        """Show the address of the page."""
        click.echo(
            f"dashboard: {address}\n\nIt reads with your own rights and writes nothing. Ctrl-C ends it."
        )

    def show_connection(self, problem: str) -> None:
        """Show on standard error why the cluster cannot be read, or that it answers again."""
        if problem:
            click.echo(one_line(f"{problem[0].lower()}{problem[1:]} Trying again ..."), err=True)
        else:
            click.echo("the cluster answers again", err=True)
