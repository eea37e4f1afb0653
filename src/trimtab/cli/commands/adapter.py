"""`trimtab adapter` serves custom and external metrics. `trimtab adapter test` tries rules."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import click

from trimtab.adapter.adapter import serve
from trimtab.adapter.config import (
    KIND,
    AdapterConfiguration,
    ServerAddress,
    connection_to,
    load_configuration,
)
from trimtab.adapter.files import ConfigurationError, kind_of
from trimtab.adapter.sources.plugin import try_plugins
from trimtab.adapter.sources.prometheus.rules import RulesFile, load_rules
from trimtab.adapter.sources.prometheus.source import RuleQuery, try_rules
from trimtab.cli.commands.run import client_of, options_for
from trimtab.cli.connection import context_option, kubeconfig_option
from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.examples import epilog_of
from trimtab.cli.limits import require_descriptors
from trimtab.cli.parameters import plugins_option_with
from trimtab.clock import SystemClock
from trimtab.cluster.config import load_connection
from trimtab.cluster.errors import ConfigError
from trimtab.cluster.http import HttpTransport
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.model.labels.selector import Selector
from trimtab.model.status import StatusError
from trimtab.operator import log_format
from trimtab.operator.settings.declare import ADAPTER_COMMAND
from trimtab.operator.settings.settings import Settings, reject_invalid
from trimtab.plugins.registry import load_plugins, load_usable_plugins
from trimtab.serving.server import ListenError


@click.group(invoke_without_command=True)
@click.option(
    "--config",
    "config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The adapter's configuration file; see docs/adapter.md.",
)
@kubeconfig_option
@context_option
@click.pass_context
def adapter(ctx: click.Context, /, config: Path | None, kubeconfig: str, context: str, **values: Any) -> None:
    """Serve custom and external metrics to autoscalers.

    Serves custom.metrics.k8s.io and external.metrics.k8s.io to the API server's aggregation layer. Values come from the sources of the configuration file: set by hand, rules over Prometheus, other adapters. Stops
    on SIGTERM or SIGINT.
    """
    if ctx.invoked_subcommand is not None:
        return
    if config is None:
        raise click.UsageError("Missing option '--config'.", ctx)
    settings = Settings.of(**{**values, "kubeconfig": kubeconfig, "context": context})
    require_descriptors()
    try:
        reject_invalid(settings)
        log_format.set_up(settings.log_format)
        configuration = load_configuration(config)
    except ValueError as error:  # ConfigurationError is one
        raise CommandError(str(error)) from error
    try:
        _run(_serve(configuration, config.absolute().parent, settings))
    except (ConfigurationError, ConfigError) as error:
        raise CommandError(str(error)) from error
    except ListenError as error:
        raise CommandError(f"cannot listen: {error.strerror or error}", "is the port taken?") from error


adapter.params += options_for(ADAPTER_COMMAND)


@adapter.command("test", epilog=epilog_of("adapter test"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--prometheus", "url", default="", metavar="URL", help="Also ask this Prometheus and show the values."
)
@click.option("--namespace", default="default", show_default=True, help="Namespace to ask about.")
@click.option("--selector", default="", metavar="KEY=VALUE,…", help="Selector of the series, for plug-ins.")
@plugins_option_with("Plug-ins to load, for a configuration.")
@click.pass_context
def test(
    ctx: click.Context, file: Path, url: str, namespace: str, selector: str, plugins: tuple[str, ...]
) -> None:
    """Print the PromQL that each rule of a rules file would send, and the values if a Prometheus is given.

    Of a configuration, call the plug-ins of its sources once and print the values. Exit codes: 0 everything can be used, 1
    some cannot, 2 the file cannot be read.
    """
    if kind_of(file) == KIND:
        _test_plugins(ctx, file, plugins, namespace, selector)
        return
    try:
        read = load_rules(file)
        tried = _run(_try(read, url, namespace))
    except (ConfigurationError, StatusError) as error:
        raise CommandError(str(error)) from error
    for result in tried:
        _show(result)
    for name, reason in read.refused.items():
        click.echo(f"{name}: cannot be used: {reason}")
    ctx.exit(FOUND if read.refused or any(result.problem for result in tried) else 0)


def _test_plugins(
    ctx: click.Context, file: Path, plugins: Sequence[str], namespace: str, selector: str
) -> None:
    try:
        configuration, loaded = load_configuration(file), load_plugins(plugins)
        series = Selector.parse(selector)
        tried = _run(try_plugins(SystemClock(), configuration, loaded, namespace, series))
    except ValueError as error:  # ConfigurationError, PluginError and SelectorError are
        raise CommandError(str(error)) from error
    if not tried:
        raise CommandError(f"{file}: no source is a plug-in", "name a file of rules to test rules")
    for result in tried:
        click.echo(f"{result.source}: {result.metric} in namespace {namespace}")
        for line in result.values:
            click.echo(f"    {line}")
        if result.problem:
            click.echo(f"    problem: {result.problem}")
    ctx.exit(FOUND if any(result.problem for result in tried) else 0)


async def _serve(configuration: AdapterConfiguration, root: Path, settings: Settings) -> None:
    clock = SystemClock()
    connection = load_connection(clock, settings.client.kubeconfig or None, settings.client.context or None)
    client = client_of(clock, connection, settings)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        plugins = load_usable_plugins(settings.plugins)
        async with serve(clock, client, configuration, root, settings.watch_namespaces, plugins):
            await stopped.wait()
    finally:
        await client.close()


async def _try(read: RulesFile, url: str, namespace: str) -> list[RuleQuery]:
    clock = SystemClock()
    if not url:
        return await try_rules(read, None, namespace)
    client = PrometheusClient(
        clock, HttpTransport(clock, connection_to(clock, ServerAddress(url=url), Path()))
    )
    try:
        return await try_rules(read, client, namespace)
    finally:
        await client.close()


def _show(tried: RuleQuery) -> None:
    click.echo(f"{tried.rule}: {tried.description}")
    if tried.promql:
        click.echo(f"  {tried.promql}")
    for line in tried.values:
        click.echo(f"    {line}")
    if tried.problem:
        click.echo(f"    problem: {tried.problem}")


def _run(main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - absent on some platforms
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
