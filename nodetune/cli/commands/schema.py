"""`nodetune schema`."""

import re

import click
from click.shell_completion import CompletionItem

from nodetune.foundation import UserError, schemas, text


def _complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in schemas.names() if name.startswith(typed)]


@click.command("schema")
@click.argument("name", required=False, shell_complete=_complete)
def command(name: str | None) -> None:
    """Print the JSON schema of a document, or the names of all.

    NAME is one of these names, or the value of "schema" in a document: nodetune.audit/1.
    """
    if name is None:
        click.echo("\n".join(schemas.names()))
        return
    short = re.sub(r"^nodetune\.|/1$", "", name)
    if short not in schemas.names():
        raise UserError(f"no schema {text.plain(name, 60)!r}: list them with: nodetune schema")
    click.echo(schemas.text(short), nl=False)
