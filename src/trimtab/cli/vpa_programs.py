"""`trimtab vpa-recommender`, `vpa-updater` and `vpa-admission-controller` take upstream's command lines.

They are `trimtab run` with upstream's defaults. Three flags of the admission controller have another meaning there and
are read as upstream does: `--port`, `--webhook-address` and `--webhook-port`. Flags of `trimtab run` work as well.
"""

import os
from collections.abc import Mapping
from typing import Any, Final

import click

from trimtab.cli.commands.run import operator_command, run_settings, setting_options
from trimtab.cli.errors import CommandError
from trimtab.cli.vpa_flags import upstream_options, with_upstream_flags
from trimtab.operator.settings.compat import VPA
from trimtab.operator.settings.settings import Settings, compat_defaults

_ANY_ADDRESS: Final = "::"  # upstream's programs listen everywhere
_COMMON: Final[Mapping[str, Any]] = {
    "compat": VPA,
    "native_vpas": True,
    "bind_address": _ANY_ADDRESS,
    "kube_api_qps": 50.0,
    "leader_elect": False,
    "leader_elect_resource_namespace": "kube-system",
}
PROGRAMS: Final[dict[str, Mapping[str, Any]]] = {
    "vpa-recommender": {
        "components": ("recommender",),
        "port": 8942,
        "leader_elect_resource_name": "vpa-recommender-lease",
    },
    "vpa-updater": {
        "components": ("updater",),
        "port": 8943,
        "leader_elect_resource_name": "vpa-updater",
    },
    "vpa-admission-controller": {
        "components": ("admission",),
        "port": 8944,
        "webhook_address": _ANY_ADDRESS,
        "webhook_port": 8000,
        "webhook_service": "vpa-webhook",
        "webhook_timeout_seconds": 30,
        "tls_cert_file": "/etc/tls-certs/serverCert.pem",
        "tls_key_file": "/etc/tls-certs/serverKey.pem",
        "tls_ca_file": "/etc/tls-certs/caCert.pem",
    },
}
"""Upstream's defaults, by program, where they differ from ours."""
_GROUPS: Final = {
    "vpa-recommender": {"Process", "Leader election", "Recommender", "History"},
    "vpa-updater": {"Process", "Leader election", "Updater"},
    "vpa-admission-controller": {"Process", "Leader election", "Admission"},
}
"""The groups of flags that the help of each program shows."""
_HOME: Final = "kube-system"
_REREAD: Final = ("--port", "--webhook-address", "--webhook-port", "--register-by-url")


def program_settings(program: str, values: dict[str, Any]) -> Settings:
    """Return the settings of upstream's program with these flags. Raise ValueError if they contradict each other."""
    home = {"namespace": os.environ.get("NAMESPACE") or _HOME}
    defaults = {**_COMMON, **home, **PROGRAMS[program]}
    given = {name: value for name, value in values.items() if value is not None}
    by_url, address = given.pop("register_by_url", False), given.pop("registered_address", "")
    port = given.pop("registered_port", "")
    if by_url:
        given["webhook_url"] = f"{address}:{port}" if "://" in address else f"https://{address}:{port}"
    return Settings.of(**{**defaults, **with_upstream_flags(given)})


def _command(program: str) -> click.Command:
    def callback(**values: Any) -> None:
        try:
            settings = program_settings(program, values)
        except ValueError as error:
            raise CommandError(str(error)) from error
        run_settings(settings)

    options = [*_shown_settings(program), *upstream_options()]
    if program == "vpa-admission-controller":
        options = [option for option in options if not set(option.opts) & set(_REREAD)] + _reread()
    return operator_command(
        program,
        options,
        callback,
        f"Run in the place of upstream's {program}, with its flags.\n\n"
        "The defaults are upstream's. Every other flag of `trimtab run` works as well. `trimtab run --help-all` shows them.",
    )


def _shown_settings(program: str) -> list[click.Parameter]:
    """Return all settings with the defaults of a program. Its help shows only those that concern the program."""
    options = setting_options({**compat_defaults(VPA), **_COMMON, "namespace": _HOME, **PROGRAMS[program]})
    for option in options:
        if isinstance(option, click.Option) and (
            option.name == "components" or getattr(option, "group", "") not in _GROUPS[program]
        ):
            option.hidden = True
    return options


def _reread() -> list[click.Parameter]:
    return [
        click.Option(
            ["--port", "webhook_port"], type=int, default=None, help="Port that the webhook listens on."
        ),
        click.Option(
            ["--webhook-address", "registered_address"],
            default=None,
            help="Address under which the webhook is registered, with --register-by-url.",
        ),
        click.Option(
            ["--webhook-port", "registered_port"],
            default=None,
            help="Port under which the webhook is registered, with --register-by-url.",
        ),
        click.Option(
            ["--register-by-url/--no-register-by-url", "register_by_url"],
            default=None,
            help="Register the webhook by its address, not by its Service.",
        ),
    ]


recommender = _command("vpa-recommender")
updater = _command("vpa-updater")
admission_controller = _command("vpa-admission-controller")
