"""`trimtab run` runs the operator, in a cluster or beside it."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from trimtab.cli.errors import CommandError
from trimtab.cli.limits import require_descriptors
from trimtab.cli.operator_port import operator_token
from trimtab.cli.parameters import Duration, ListOption, Names, Number
from trimtab.cli.vpa_flags import as_pflag, upstream_options, with_upstream_flags
from trimtab.model.feature_gates import BOOLEANS
from trimtab.operator import gc_tuning
from trimtab.operator.settings.declare import Setting
from trimtab.operator.settings.settings import Settings, declared, read_by, reject_invalid
from trimtab.operator.vertical.admission.tls import refuse_unusable_tls

if TYPE_CHECKING:
    from trimtab.clock import Clock
    from trimtab.cluster.client import Client
    from trimtab.cluster.config import Connection


class _Setting(click.Option):
    """An option with the name of its group, and a variable that Kubernetes does not set.

    Kubernetes gives every pod variables about the Services of its namespace. That of a Service `trimtab-webhook` is
    `TRIMTAB_WEBHOOK_PORT=tcp://10.96.53.214:443`, which is also the name of a setting.
    """

    group = ""
    is_essential = False
    """Whether `--help` shows it; `--help-all` shows all."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value of the setting's variable, unless it is the address of a Service."""
        value = super().resolve_envvar_value(ctx)
        return None if value is not None and _SERVICE_LINK.match(value) else value


class _ListSetting(_Setting, ListOption):
    """A setting that is a list or a map."""


_SERVICE_LINK: Final = re.compile(r"(tcp|udp|sctp)://")


_NO_DEFAULTS: Final[Mapping[str, Any]] = {}


class _Run(click.Command):
    """Accepts switches as Kubernetes programs do. `--leader-elect=false` is `--no-leader-elect`."""

    has_short_help = False
    """Whether `--help` shows the essential settings only."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group."""
        options = [option for option in self.get_params(ctx) if self._is_shown(ctx, option)]
        shown = [(option, option.get_help_record(ctx)) for option in options]
        lines = [
            (getattr(option, "group", ""), (record[0], self._shortened(ctx, record[1])))
            for option, record in shown
            if record is not None
        ]
        for group, records in groupby(lines, key=lambda line: line[0]):
            with formatter.section(group or "Options"):
                formatter.write_dl([record for _, record in records])

    def _is_short(self, ctx: click.Context) -> bool:
        return self.has_short_help and not ctx.meta.get(_SHOWS_ALL)

    def _is_shown(self, ctx: click.Context, option: click.Parameter) -> bool:
        return not self._is_short(ctx) or not isinstance(option, _Setting) or option.is_essential

    def _shortened(self, ctx: click.Context, text: str) -> str:
        return _VARIABLE.sub("]", text) if self._is_short(ctx) else text

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


def _show_all(ctx: click.Context, _param: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_VARIABLE: Final = re.compile(r"; env: \w+\]$")
_SHOWS_ALL: Final = "trimtab.shows_all"
_HELP_ALL: Final = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all flags and exit.",
)


def _option(declared: Setting, defaults: Mapping[str, Any] = _NO_DEFAULTS) -> click.Option:
    default = declared.shown(defaults.get(declared.name, declared.default))
    words = f"{declared.help} [default: {default}; env: {declared.environment}]"
    names = [declared.flag, *declared.aliases, declared.name]
    kind = _KINDS.get(declared.type, declared.type)
    if declared.type is bool:
        names, kind = [f"{declared.flag}/{declared.flag.replace('--', '--no-', 1)}", declared.name], None
    make = _ListSetting if declared.is_list else _Setting
    variables = [declared.environment, *declared.variables]
    option = make(names, type=kind, default=None, help=words, envvar=variables)
    option.group, option.is_essential = declared.group, declared.is_essential
    return option


_KINDS: Final[Mapping[Any, click.ParamType[Any]]] = {timedelta: Duration(), float: Number(), tuple: Names()}


def options_for(program: str) -> list[click.Option]:
    """Return the options of the settings that a program reads."""
    return [_option(each) for each in read_by(program)]


def setting_options(defaults: Mapping[str, Any] = _NO_DEFAULTS) -> list[click.Parameter]:
    """Return one option per setting. `defaults` are those of a program that has other ones."""
    options: list[click.Parameter] = [_option(each, defaults) for each in declared()]
    options.append(click.Option(["--sync-period", "sync_period"], type=Duration(), hidden=True, default=None))
    return options


def operator_command(
    name: str, options: list[click.Parameter], callback: Callable[..., None], words: str
) -> _Run:
    """Return a command that runs the operator."""
    return _Run(name, params=options, callback=callback, help=words)


def _command() -> click.Command:
    command = operator_command(
        "run",
        [*setting_options(), *upstream_options(), _HELP_ALL],
        _run,
        "Run the operator: scale what the autoscalers of a cluster ask for, until stopped.\n\n"
        "Every flag can also be set by an environment variable. `--help-all` shows all flags with their variables.",
    )
    command.has_short_help = True
    return command


def settings_of(arguments: Sequence[str], options: Sequence[click.Parameter] = ()) -> Settings:
    """Return the settings of a program that is started with these arguments, or raise ValueError.

    The environment of this process does not count. `options` are those of another program than `trimtab run`.
    """
    known = [copy(option) for option in options or run.params]
    for option in known:
        option.envvar = None
    command = operator_command("run", known, lambda **_: None, "")
    try:
        values = command.make_context("run", list(arguments)).params
    except click.UsageError as error:
        raise ValueError(error.format_message()) from error
    settings = Settings.of(**values if options else with_upstream_flags(values))
    reject_invalid(settings)
    return settings


def _run(**values: Any) -> None:
    try:
        settings = Settings.of(**with_upstream_flags(values))
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


class Announcer(Protocol):
    """Shows what happens to the user of a dashboard. Without one the operator logs it."""

    def show_server(self, server: str) -> None:
        """Show the address of the API server, before it is asked."""
        ...

    def show_address(self, address: str) -> None:
        """Show the address of the page."""
        ...

    def show_connection(self, problem: str) -> None:
        """Show why the cluster cannot be read, or that it can be read again if the text is empty."""
        ...


def start(settings: Settings, announcer: Announcer | None = None) -> None:
    """Run an operator until stopped."""
    try:
        reject_invalid(settings)
    except ValueError as error:
        raise CommandError(str(error)) from error
    require_descriptors()
    gc_tuning.collect_less_often()
    from trimtab.clock import SystemClock  # noqa: PLC0415 - imported when it runs, so that --help is quick
    from trimtab.cluster.config import load_connection  # noqa: PLC0415
    from trimtab.cluster.errors import ConfigError  # noqa: PLC0415
    from trimtab.operator import log_format  # noqa: PLC0415
    from trimtab.operator.horizontal.kinds import RivalControllerError  # noqa: PLC0415
    from trimtab.operator.operator import Operator, Parts  # noqa: PLC0415
    from trimtab.operator.process import Component  # noqa: PLC0415

    log_format.set_up(settings.log_format, verbosity=0 if announcer is not None else settings.verbosity)
    clock = SystemClock()
    token = operator_token()

    def page(parts: Parts) -> Component:
        from trimtab.dashboard.dashboard import Dashboard  # noqa: PLC0415 - most operators show no page

        if announcer is None:
            return Dashboard(parts)
        return Dashboard(parts, announcer.show_address, announcer.show_connection)

    def adapter(parts: Parts) -> Component:
        from trimtab.adapter.adapter import AdapterComponent  # noqa: PLC0415 - most operators serve no metrics
        from trimtab.plugins.registry import load_usable_plugins  # noqa: PLC0415

        settings = parts.settings
        return AdapterComponent(
            parts.clock,
            parts.client,
            settings.metrics.adapter_config,
            namespaces=settings.watch_namespaces,
            plugins=load_usable_plugins(settings.plugins),
        )

    async def main() -> None:
        connection = load_connection(
            clock, settings.client.kubeconfig or None, settings.client.context or None
        )
        if announcer is not None:
            announcer.show_server(connection.server)
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
