"""`trimtab run` runs the operator, in a cluster or beside it."""

import asyncio
from collections.abc import Callable
from dataclasses import Field
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from trimtab.cli.errors import CommandError
from trimtab.cli.limits import require_descriptors
from trimtab.cli.operator_port import operator_token
from trimtab.cli.parameters import Duration, Names, Number
from trimtab.cli.vpa_flags import as_pflag, upstream_options, with_upstream_flags
from trimtab.model.feature_gates import BOOLEANS
from trimtab.model.times import format_duration
from trimtab.operator import gc_tuning
from trimtab.operator.settings.bounds import reject_bad_namespaces, reject_out_of_range
from trimtab.operator.settings.flags import Flag
from trimtab.operator.settings.settings import Settings, declared, with_values
from trimtab.operator.vertical.admission.tls import refuse_unusable_tls

if TYPE_CHECKING:
    from trimtab.clock import Clock
    from trimtab.cluster.client import Client
    from trimtab.cluster.config import Connection


class _Setting(click.Option):
    """An option with the name of its group."""

    group = ""


class _Run(click.Command):
    """Accepts switches as Kubernetes programs do. `--leader-elect=false` is `--no-leader-elect`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group."""
        shown = [(option, option.get_help_record(ctx)) for option in self.get_params(ctx)]
        lines = [(getattr(option, "group", ""), record) for option, record in shown if record is not None]
        for group, records in groupby(lines, key=lambda line: line[0]):
            with formatter.section(group or "Options"):
                formatter.write_dl([record for _, record in records])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [self._switch(as_pflag(argument)) for argument in args])

    def _switch(self, argument: str) -> str:
        name, is_given, value = argument.partition("=")
        if not is_given:
            return argument
        for option in self.params:
            if isinstance(option, click.Option) and option.is_flag and name in option.opts:
                is_on = BOOLEANS.get(value)
                return argument if is_on is None else (option.opts if is_on else option.secondary_opts)[0]
        return argument


def _option(field: Field[Any], flag: Flag) -> click.Option:
    option = _ungrouped(field, flag)
    option.group = flag.group
    return option


def _ungrouped(field: Field[Any], flag: Flag) -> _Setting:
    default = field.default
    shown = _shown(default)
    words = f"{flag.help} [default: {shown}; env: {flag.environment}]"
    variables = [flag.environment, *flag.variables]
    if isinstance(default, bool):
        off = flag.name.replace("--", "--no-", 1)
        return _Setting([f"{flag.name}/{off}", field.name], default=None, help=words, envvar=variables)
    kind: click.ParamType[Any] | type = type(default)
    if isinstance(default, timedelta):
        kind = Duration()
    elif isinstance(default, float):
        kind = Number()
    elif isinstance(default, tuple):
        kind = Names()
    named = [flag.name, *flag.aliases, field.name]
    return _Setting(named, type=kind, default=None, help=words, envvar=variables)


def _shown(default: Any) -> str:
    if isinstance(default, timedelta):
        return format_duration(default)
    if isinstance(default, tuple):
        return ",".join(default) or "none"
    return str(default).lower() if isinstance(default, bool) else str(default) or "none"


def options_of(*names: str) -> list[click.Option]:
    """Return the options of some settings, for commands that share them with the operator."""
    found = {field.name: _option(field, flag) for field, flag in declared() if field.name in names}
    return [found[name] for name in names]


def setting_options() -> list[click.Parameter]:
    """Return one option per setting."""
    options: list[click.Parameter] = [_option(field, flag) for field, flag in declared()]
    options.append(click.Option(["--sync-period", "sync_period"], type=Duration(), hidden=True, default=None))
    return options


def operator_command(
    name: str, options: list[click.Parameter], callback: Callable[..., None], words: str
) -> click.Command:
    """Return a command that runs the operator."""
    return _Run(name, params=options, callback=callback, help=words)


def _command() -> click.Command:
    return operator_command(
        "run",
        [*setting_options(), *upstream_options()],
        _run,
        "Run the operator: scale what the autoscalers of a cluster ask for, until stopped.",
    )


def _run(**values: Any) -> None:
    try:
        settings = with_values(with_upstream_flags(values))
        reject_out_of_range(settings)
    except ValueError as error:
        raise CommandError(str(error)) from error
    run_settings(settings)


def run_settings(settings: Settings) -> None:
    """Run an operator until stopped. Raise CommandError if its webhook or its port cannot be served."""
    try:
        refuse_unusable_tls(settings)
    except ValueError as error:
        raise CommandError(str(error)) from error
    from trimtab.serving.server import ListenError  # noqa: PLC0415 - imported when it runs, so that --help is quick

    try:
        start(settings)
    except ListenError as error:
        where = f"{settings.bind_address}:{settings.port}"
        raise CommandError(
            f"cannot listen on {where}: {error.strerror or error}", "choose another --port, or 0 for any"
        ) from error


def start(settings: Settings, announce: Callable[[str], None] | None = None) -> None:
    """Run an operator until stopped. `announce` receives the dashboard's address."""
    try:
        reject_bad_namespaces(settings)
    except ValueError as error:
        raise CommandError(str(error)) from error
    require_descriptors()
    gc_tuning.collect_less_often()
    from trimtab.clock import SystemClock  # noqa: PLC0415 - imported when it runs, so that --help is quick
    from trimtab.cluster.config import load_connection  # noqa: PLC0415
    from trimtab.cluster.errors import ConfigError  # noqa: PLC0415
    from trimtab.operator import log_format  # noqa: PLC0415
    from trimtab.operator.horizontal.inputs.kinds import RivalControllerError  # noqa: PLC0415
    from trimtab.operator.operator import Operator, Parts  # noqa: PLC0415
    from trimtab.operator.process import Component  # noqa: PLC0415

    log_format.set_up(settings.log_format, verbosity=0 if announce is not None else settings.verbosity)
    clock = SystemClock()
    token = operator_token()

    def page(parts: Parts) -> Component:
        from trimtab.dashboard.dashboard import Dashboard  # noqa: PLC0415 - most operators show no page

        return Dashboard(parts, announce)

    def adapter(parts: Parts) -> Component:
        from trimtab.adapter.adapter import AdapterComponent  # noqa: PLC0415 - most operators serve no metrics

        settings = parts.settings
        return AdapterComponent(
            parts.clock, parts.client, settings.metrics.adapter_config, namespaces=settings.watch_namespaces
        )

    async def main() -> None:
        connection = load_connection(
            clock, settings.client.kubeconfig or None, settings.client.context or None
        )
        client = client_of(clock, connection, settings)
        try:
            beside = {"dashboard": page, "adapter": adapter}
            await Operator(clock, client, settings, token=token, beside=beside).run()
        finally:
            await client.close()

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(main())
    except (ConfigError, RivalControllerError, ValueError) as error:
        raise CommandError(str(error), exit_code=2) from error


def client_of(clock: "Clock", connection: "Connection", settings: Settings) -> "Client":
    """Return a client that is rate-limited by the settings."""
    from trimtab.cluster.client import Client  # noqa: PLC0415 - imported when it runs, so that --help is quick
    from trimtab.cluster.http import HttpTransport  # noqa: PLC0415

    transport = HttpTransport(clock, connection)
    return Client(
        clock, transport, qps=settings.client.kube_api_qps or None, burst=int(settings.client.kube_api_burst)
    )


def _loop_factory() -> Any:
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return uvloop.new_event_loop


run = _command()
