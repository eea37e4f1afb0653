"""The reference page of the command line, from the commands themselves."""

import inspect
import re
from collections.abc import Iterator

import click

from trimtab.cli import COMMANDS, cli
from trimtab.cli.examples import EXAMPLES

_ABOUT = """# All commands

`trimtab COMMAND --help` prints the same. [Commands](../commands.md) has what all of them share: exit codes, completion and the options of
kubectl. `kubectl trimtab COMMAND` runs the same program.
"""
_FLAGS_ELSEWHERE = {
    "run": "[Flags of `trimtab run`](flags.md)",
    **{
        name: "[Flags of the upstream VPA 1.8.1](upstream-vpa-flags.md)"
        for name in COMMANDS
        if name.startswith("vpa-")
    },
}
"""Commands whose flags have a page of their own."""
_DEFAULT = re.compile(r"\s*\[(?:default: (?P<default>.*?))?(?:; )?(?:env: (?P<variable>\w+))?\]\Z")


def commands_page() -> list[str]:
    """Return the parts of the page."""
    listed = "".join(
        f"| [`{name}`](#{_anchor(name)}) | {command.summary} |\n"
        for name, command in sorted(COMMANDS.items())
    )
    return [
        _ABOUT,
        f"| command | does |\n|---|---|\n{listed}",
        *_commands(cli, click.Context(cli, info_name="trimtab", **cli.context_settings)),
    ]


def _anchor(name: str) -> str:
    return f"trimtab-{name}"


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name)
        yield from _command(command, inner)
        if isinstance(command, click.Group):
            yield from _commands(command, inner)


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    path = context.command_path.removeprefix("trimtab ")
    yield f"## trimtab {path}\n"
    yield f"{_paragraphs(command.help or '')}\n"
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    yield f"```text\n{usage}\n```\n"
    if path in _FLAGS_ELSEWHERE:
        yield f"Its flags: {_FLAGS_ELSEWHERE[path]}.\n"
    elif rows := "".join(_rows(command, context)):
        yield f"| option | default | meaning |\n|---|---|---|\n{rows}"
    if examples := EXAMPLES.get(path):
        lines = "\n".join(f"# {example.does}\n{example.line}" for example in examples)
        yield f"```sh\n{lines}\n```\n"


def _paragraphs(text: str) -> str:
    paragraphs = inspect.cleandoc(text).replace("\b", "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _rows(command: click.Command, context: click.Context) -> Iterator[str]:
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is None or "--help" in option.opts or isinstance(option, click.Argument):
            continue
        meaning = " ".join(record[1].split())
        found = _DEFAULT.search(meaning)
        default = f"`{found['default']}`" if found and found["default"] else ""
        variable = f" Variable `{found['variable']}`." if found and found["variable"] else ""
        cells = (f"`{record[0]}`", default, _DEFAULT.sub("", meaning) + variable)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
