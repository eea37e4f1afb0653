"""The command line: parse arguments, wire programs together, print results.

Each command is a module in `commands` that is imported only when the command runs, so that `trimtab --help` and shell
completion answer at once. A command of several modules has a package: `explain`, `plugin`, `top`. To add a command, write
`commands/NAME.py` with a click command and add its line to `COMMANDS` and its examples to `examples`. `bundle` reads the files
that a command names, `stories` holds the examples of `trimtab up`, and `vpa_programs` has the programs of the upstream VPA under
their names.

What does not belong here: any computation. Commands call `model`, `decide`, `backtest` and `operator`.
"""

import errno
import importlib
import os
import sys
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem, ShellComplete

import trimtab
from trimtab.cli.errors import CANNOT_READ, DEFECT, INTERRUPTED, one_line, system_error
from trimtab.cli.examples import epilog_of
from trimtab.model.spelling import nearest


class Lazy(NamedTuple):
    """The module of a command, and its line in `trimtab --help`."""

    where: str
    summary: str


COMMANDS = {
    "adapter": Lazy(
        "trimtab.cli.commands.adapter:adapter", "Serve custom and external metrics to autoscalers."
    ),
    "completion": Lazy(
        "trimtab.cli.commands.completion:completion", "Print the completion script of a shell."
    ),
    "convert": Lazy(
        "trimtab.cli.commands.convert:convert", "Convert HPA and VPA manifests between versions and kinds."
    ),
    "dashboard": Lazy(
        "trimtab.cli.commands.dashboard:dashboard",
        "Show all autoscalers of a cluster in a browser. Nothing is installed there and nothing is written.",
    ),
    "explain": Lazy(
        "trimtab.cli.explain.command:command",
        "Explain why an autoscaler does what it does: `trimtab explain hpa/NAME`, `vpa/NAME` or `pod/NAME`.",
    ),
    "install": Lazy(
        "trimtab.cli.commands.install:install",
        "Print the manifests of an installation. Nothing is changed in the cluster.",
    ),
    "lab": Lazy(
        "trimtab.cli.commands.lab:lab",
        "Run an embedded Kubernetes API server that kubectl can use, until Ctrl-C.",
    ),
    "plugin": Lazy(
        "trimtab.cli.plugin.command:plugin", "List the installed plug-ins, check one, or start a new one."
    ),
    "replay": Lazy(
        "trimtab.cli.commands.replay:replay",
        "Repeat recorded decisions, to the byte. Records come from `trimtab explain -o record`.",
    ),
    "run": Lazy(
        "trimtab.cli.commands.run:run",
        "Run the operator: scale what the autoscalers of a cluster ask for, until stopped.",
    ),
    "shards": Lazy(
        "trimtab.cli.commands.shards:shards",
        "List the shards of an operator and their holders.",
    ),
    "simulate": Lazy(
        "trimtab.cli.commands.simulate:simulate",
        "Backtest HPAs and VPAs on recorded load, with the production code.",
    ),
    "top": Lazy(
        "trimtab.cli.top.command:top",
        "List all autoscalers: their metrics, replicas and sizes, and what holds them.",
    ),
    "trace": Lazy(
        "trimtab.cli.commands.trace:trace",
        "Record load from Prometheus as a trace for `trimtab simulate`.",
    ),
    "up": Lazy(
        "trimtab.cli.commands.up:up",
        "Try Trimtab: an embedded cluster in this process, with five small stories for kubectl and the dashboard.",
    ),
    "version": Lazy("trimtab.cli.commands.version:version", "Print the version of this program."),
    "vpa-admission-controller": Lazy(
        "trimtab.cli.vpa_programs:admission_controller",
        "Run in the place of upstream's vpa-admission-controller, with its flags.",
    ),
    "vpa-recommender": Lazy(
        "trimtab.cli.vpa_programs:recommender",
        "Run in the place of upstream's vpa-recommender, with its flags.",
    ),
    "vpa-updater": Lazy(
        "trimtab.cli.vpa_programs:updater",
        "Run in the place of upstream's vpa-updater, with its flags.",
    ),
    "validate": Lazy(
        "trimtab.cli.commands.validate:validate",
        "Check manifests offline, as the API server would, and more.",
    ),
}


class LazyGroup(click.Group):
    """A click group that imports a command when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].where.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        command.epilog = epilog_of(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word. For a misspelt one the error names the one that was probably meant."""
        word = args[0]
        if word not in COMMANDS and not word.startswith("-") and (near := nearest(word, COMMANDS)):
            ctx.fail(f"there is no command {word!r}; did you mean {near}?")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names from the table, without importing commands."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=COMMANDS[name].summary) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without importing commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(trimtab.__version__, prog_name="trimtab")
@click.option("--debug", is_flag=True, help="Show the traceback of a defect instead of one line.")
def cli(debug: bool) -> None:
    """Scale Kubernetes pods: how many, and how big; count the right ones and show why.

    Exit codes: 0 done; 1 done, and something was found; 2 wrong usage or unreadable input; 70 a defect of Trimtab;
    74 a full disk or too few open files; 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. A failure is one line on stderr, without a traceback."""
    sys.exit(answer(sys.argv[1:] if arguments is None else arguments))


def kubectl_complete() -> None:
    """Complete `kubectl trimtab …`: kubectl calls this program as `kubectl_complete-trimtab` with the words so far.

    The last line is the directive of kubectl's own completion: 4 keeps file names out, 0 lets the shell propose them.
    """
    *words, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(cli, {}, "trimtab", "_TRIMTAB_COMPLETE").get_completions(words, incomplete)
    names = [item for item in found if item.type == "plain"]
    for item in names:
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(":4" if len(names) == len(found) else ":0")


def answer(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        result = cli.main(args=arguments, prog_name="trimtab", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except click.UsageError as error:
        code = _show_usage_error(error)
    except click.ClickException as error:
        click.echo(one_line(error.format_message(), getattr(error, "hint", "")), err=True)
        # A file that cannot be opened is an input we cannot use; click's own code would mean "something was found".
        code = CANNOT_READ if isinstance(error, click.FileError) else error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo(one_line("interrupted"), err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        _close_stdout()  # `trimtab ... | head` is no failure of ours
        code = 0
    except OSError as error:
        code = _show_system_error(error, "--debug" in arguments)
    except Exception as error:  # noqa: BLE001 - the last line of defence; what reaches it is a defect of ours
        code = _show_defect(error, "--debug" in arguments)
    return code


def _show_usage_error(error: click.UsageError) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)  # the help, on its own lines
        return error.exit_code
    path = error.ctx.command_path if error.ctx else "trimtab"
    click.echo(one_line(error.format_message(), f"see `{path} --help`"), err=True)
    return error.exit_code


def _close_stdout() -> None:
    # Python would complain while flushing stdout at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_system_error(error: OSError, is_debugging: bool) -> int:
    known = system_error(error)
    if known is None or is_debugging:
        return _show_defect(error, is_debugging)
    if error.errno not in {errno.EMFILE, errno.ENFILE}:
        _close_stdout()
    click.echo(one_line(known.message, known.hint), err=True)
    return known.exit_code


def _show_defect(error: Exception, is_debugging: bool) -> int:
    if is_debugging:
        sys.excepthook(type(error), error, error.__traceback__)
    else:
        message = f"defect: {type(error).__name__}: {error}"
        click.echo(one_line(message, "please report it with the output of `trimtab --debug ...`"), err=True)
    return DEFECT
