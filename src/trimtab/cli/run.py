"""`trimtab run`: the operator, in a cluster or beside one."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import Field
from datetime import timedelta
from itertools import groupby
from typing import Any

import click

from trimtab.cli.errors import CommandError
from trimtab.model.durations import format_duration, parse_duration
from trimtab.operator import garbage
from trimtab.operator.flags import Flag
from trimtab.operator.settings import Settings, declared, with_values


class Duration(click.ParamType[timedelta]):
    """A duration such as 15s or 5m."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read the text."""
        if isinstance(value, timedelta):
            return value
        try:
            span = parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if span < timedelta():
            self.fail(f"{value!r} is negative", param, ctx)
        return span


class Names(click.ParamType[tuple[str, ...]]):
    """Several names, separated by commas."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split the text."""
        if isinstance(value, tuple):
            return value
        return tuple(part.strip() for part in str(value).split(",") if part.strip())


class _Setting(click.Option):
    """An option that knows its group."""

    group = ""


class _Run(click.Command):
    """Takes switches also as Kubernetes programs do: `--leader-elect=false` is `--no-leader-elect`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options group by group: eighty in one list are read by nobody."""
        shown = [(one, one.get_help_record(ctx)) for one in self.get_params(ctx)]
        lines = [(getattr(one, "group", ""), record) for one, record in shown if record is not None]
        for group, records in groupby(lines, key=lambda line: line[0]):
            with formatter.section(group or "Options"):
                formatter.write_dl([record for _, record in records])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        return super().parse_args(ctx, [self._switch(argument) for argument in args])

    def _switch(self, argument: str) -> str:
        name, is_given, value = argument.partition("=")
        if not is_given:
            return argument
        for option in self.params:
            if isinstance(option, click.Option) and option.is_flag and name in option.opts:
                return {"true": option.opts[0], "false": option.secondary_opts[0]}.get(
                    value.lower(), argument
                )
        return argument


def _option(field: Field[Any], flag: Flag) -> click.Option:
    option = _ungrouped(field, flag)
    option.group = flag.group
    return option


def _ungrouped(field: Field[Any], flag: Flag) -> _Setting:
    default = field.default
    shown = _shown(default)
    words = f"{flag.help} [default: {shown}; env: {flag.environment}]"
    if isinstance(default, bool):
        off = flag.name.replace("--", "--no-", 1)
        return _Setting([f"{flag.name}/{off}", field.name], default=None, help=words, envvar=flag.environment)
    kind: click.ParamType[Any] | type = type(default)
    if isinstance(default, timedelta):
        kind = Duration()
    elif isinstance(default, tuple):
        kind = Names()
    return _Setting([flag.name, field.name], type=kind, default=None, help=words, envvar=flag.environment)


def _shown(default: Any) -> str:
    if isinstance(default, timedelta):
        return format_duration(default)
    if isinstance(default, tuple):
        return ",".join(default) or "none"
    return str(default).lower() if isinstance(default, bool) else str(default) or "none"


def _command() -> click.Command:
    options: list[click.Parameter] = [_option(field, flag) for field, flag in declared()]
    options.append(click.Option(["--sync-period", "sync_period"], type=Duration(), hidden=True, default=None))
    return _Run(
        "run",
        params=options,
        callback=_run,
        help="Run the operator: scale what the autoscalers of a cluster ask for, until stopped.",
    )


def _run(**values: Any) -> None:
    settings = with_values(values)
    try:
        start(settings)
    except OSError as error:
        where = f"{settings.bind_address}:{settings.port}"
        raise CommandError(
            f"cannot listen on {where}: {error.strerror or error}", "choose another --port, or 0 for any"
        ) from error


def start(settings: Settings, announce: Callable[[str], None] | None = None) -> None:
    """Run an operator with these settings until stopped; `announce` is told the dashboard's address."""
    garbage.look_less_often()
    from trimtab.clock import SystemClock  # noqa: PLC0415 - imported when it runs, so that --help is quick
    from trimtab.cluster.client import Client  # noqa: PLC0415
    from trimtab.cluster.config import load_connection  # noqa: PLC0415
    from trimtab.cluster.errors import ConfigError  # noqa: PLC0415
    from trimtab.cluster.http import HttpTransport  # noqa: PLC0415
    from trimtab.operator import logs  # noqa: PLC0415
    from trimtab.operator.assembly import Operator, Parts  # noqa: PLC0415
    from trimtab.operator.horizontal.native import RivalControllerError  # noqa: PLC0415
    from trimtab.operator.process import Component  # noqa: PLC0415

    logs.set_up(settings.log_format, quiet=announce is not None)
    clock = SystemClock()

    def page(parts: Parts) -> Component:
        from trimtab.dashboard.component import Dashboard  # noqa: PLC0415 - most operators show no page

        return Dashboard(parts, announce)

    def adapter(parts: Parts) -> Component:
        from trimtab.adapter.component import AdapterComponent  # noqa: PLC0415 - most operators serve no metrics

        return AdapterComponent(parts.clock, parts.client, parts.settings.adapter_config)

    async def main() -> None:
        connection = load_connection(clock, settings.kubeconfig or None, settings.context or None)
        client = Client(
            clock,
            HttpTransport(clock, connection),
            qps=settings.kube_api_qps or None,
            burst=settings.kube_api_burst,
        )
        try:
            token = os.environ.get("TRIMTAB_TOKEN", "")
            beside = {"dashboard": page, "adapter": adapter}
            await Operator(clock, client, settings, token=token, beside=beside).run()
        finally:
            await client.close()

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(main())
    except (ConfigError, RivalControllerError, ValueError) as error:
        raise CommandError(str(error), exit_code=2) from error


def _loop_factory() -> Any:
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return uvloop.new_event_loop


run = _command()
