"""`trimtab completion` prints the completion script of a shell."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For this session: `source <(trimtab completion bash)`, or `trimtab completion fish | source`.
    """
    script = get_completion_class(shell)
    assert script is not None  # the choice above lists the shells that click supports
    click.echo(script(ctx.find_root().command, {}, "trimtab", "_TRIMTAB_COMPLETE").source())
