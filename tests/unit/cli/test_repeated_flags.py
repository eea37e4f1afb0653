"""Flags of lists and maps, in every program: repeated flags and commas add up."""

from collections.abc import Iterator, Mapping

import click
import pytest

from tools import real_up
from trimtab.cli import COMMANDS, cli
from trimtab.cli.parameters import ListOption, Names

LIST_FLAGS: Mapping[str, tuple[str, str]] = {
    "--components": ("recommender", "updater"),
    "--watch-namespaces": ("shop", "search"),
    "--ignored-vpa-object-namespaces": ("shop", "search"),
    "--namespace": ("shop", "search"),
    "--dashboard-hosts": ("a.example.com", "b.example.com"),
    "--plugins": ("example.com/NotDraining", "example.com/StepPlan"),
    "--scenario": ("tolerance", "to-zero"),
    "--feature-gates": ("HPAScaleToZero=true", "HPASelectionStrategy=false"),
    "--compat": ("kubernetes-1.37", "vpa-1.8"),
    "--webhook-labels": ("team:shop", "stage:test"),
    "--tls-ciphers": ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"),
}
"""Two values of each flag."""


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _commands(found, f"{name} {child}")


def _options() -> Iterator[tuple[str, click.Option]]:
    programs = [*_commands(cli, "trimtab"), ("make up ARGS=--real", real_up.up)]
    for name, command in programs:
        for option in command.params:
            if isinstance(option, click.Option):
                yield name, option


LISTS = [
    pytest.param(option, id=f"{name} {option.opts[-1]}")
    for name, option in _options()
    if isinstance(option, ListOption)
]


def _parsed(option: click.Option, *values: str) -> object:
    """Return the value of an option that the command line has once per value."""
    arguments = [part for value in values for part in (option.opts[-1], value)]
    command = click.Command("program", params=[option])
    return command.make_context("program", arguments).params[str(option.name)]


@pytest.mark.parametrize("option", LISTS)
def test_repeated_flags_add_up_as_commas_do(option: click.Option):
    first, second = LIST_FLAGS[option.opts[-1]]
    both = f"{first},{second}"

    repeated = _parsed(option, first, second)

    assert repeated == _parsed(option, both)
    assert repeated == ((first, second) if isinstance(option.type, Names) else both)


@pytest.mark.parametrize("option", LISTS)
def test_an_absent_list_has_its_default(option: click.Option):
    default = option.default
    assert _parsed(option) == (() if default == "" and isinstance(option.type, Names) else default)


def test_a_variable_is_one_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GATES", "A=true, B=false")
    option = ListOption(["--gates"], envvar="GATES")
    assert _parsed(option) == "A=true, B=false"


def test_every_flag_of_a_list_can_be_repeated():
    said = ("separated by commas", ",…", ",...", "=true,")
    missed = [
        f"{name} {option.opts[-1]}"
        for name, option in _options()
        if not option.multiple
        and (
            isinstance(option.type, Names)
            or option.opts[-1] in LIST_FLAGS.keys() - {"--namespace"}
            or any(words in f"{option.metavar} {option.help}" for words in said)
        )
    ]
    # A selector is one expression. kubectl, too, takes the last.
    assert missed == ["trimtab adapter test --selector"]
    assert COMMANDS.keys() >= {"run", "explain", "simulate", "replay", "dashboard", "adapter", "up"}
