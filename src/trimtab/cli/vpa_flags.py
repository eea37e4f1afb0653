"""Accepts flags of the upstream VPA, written as its programs take them."""

import re
from typing import Any

import click

from trimtab.operator.settings.upstream_flags import TOLERATED, TRANSLATED, translated

_FLAG = re.compile(r"(--?)([a-z][\w-]*)(=.*)?\Z", re.ASCII | re.DOTALL)


def as_pflag(argument: str) -> str:
    """Return an argument as click reads it. Upstream also takes `--kube_api_qps` and `-v=4`."""
    found = _FLAG.match(argument)
    if found is None or (found[1] == "-" and found[3] is None):
        return argument
    dashes = "--" if len(found[2]) == 1 else found[1]
    return f"{dashes}{found[2].replace('_', '-')}{found[3] or ''}"


def upstream_options() -> list[click.Parameter]:
    """Return hidden options for upstream's flags that have no setting here."""
    return [
        # A flag alone means true, as upstream's switches do.
        click.Option([name, _field(name)], is_flag=False, flag_value="true", default=None, hidden=True)
        for name in (*TOLERATED, *TRANSLATED)
    ]


def with_upstream_flags(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of settings, including those set by upstream's flags."""
    given = {name: values.pop(_field(name), None) for name in (*TOLERATED, *TRANSLATED)}
    if given["--vpa-object-namespace"] and values.get("ignored_namespaces"):
        raise ValueError(
            "--vpa-object-namespace and --ignored-vpa-object-namespaces exclude each other; give one of them"
        )
    meant = translated(given)
    for name, value in meant.items():
        if values.get(name) not in (None, value):
            raise ValueError(
                f"{_flag_of(name, given)} says something else than the setting that it stands for; give one of them"
            )
    return {**values, **meant}


def _flag_of(name: str, given: dict[str, Any]) -> str:
    return next(
        flag
        for flag, value in given.items()
        if value is not None and flag in TRANSLATED and name in TRANSLATED[flag].translate(value)
    )


def _field(name: str) -> str:
    return "upstream" + name.replace("-", "_")
