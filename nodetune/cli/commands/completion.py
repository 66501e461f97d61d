"""`nodetune completion`."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    nodetune completion bash > /etc/bash_completion.d/nodetune
    nodetune completion zsh > /usr/local/share/zsh/site-functions/_nodetune
    nodetune completion fish > ~/.config/fish/completions/nodetune.fish

    The script completes commands, options, checks, hosts and runs. For the current shell only: eval "$(nodetune completion bash)" (in zsh, after compinit), or in fish:
    nodetune completion fish | source
    """
    click.echo(script(context.find_root().command, shell))


def script(program: click.Command, shell: str) -> str:
    """Return the completion script for one of SHELLS."""
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101  (click knows each of SHELLS)
    text = made(program, {}, "nodetune", "_NODETUNE_COMPLETE").source()
    # click's fish script cuts a value at its comma
    return text.replace('string split ","', 'string split --max 1 ","')
