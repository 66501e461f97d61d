"""`nodetune mcp`."""

import importlib.util
import tempfile
from pathlib import Path

import click

from nodetune.cli import options
from nodetune.foundation import UserError


def _answered(context: click.Context, _parameter: click.Parameter, question: str | None) -> None:
    """Answer a question of a server, which starts this command for it: judging many hosts forks, and a server has threads."""
    if question:
        from nodetune.cli import agent_answers

        click.echo(agent_answers.answer(question))
        context.exit()


@click.command("mcp")
@click.option("--facts", **options.SAVED, metavar="FILE|DIR", help="Saved facts that agents may ask about.")
@click.option(
    "-i", "--inventory", default="", metavar="INV", help="Hosts that agents may ask about, instead of --facts."
)
@click.option("-l", "--limit", default="", metavar="PATTERN", help="Only these hosts of the inventory.")
@click.option("-u", "--user", default="", metavar="NAME", help="Log in as this user.")
@click.option("-b", "--become", is_flag=True, help="Become root with sudo, which must not ask for a password.")
@click.option("--site", multiple=True, **options.FILE, help="Site file. May be repeated.")
@click.option("--history", default="", metavar="FILE|URL", help="History that agents may ask about.")
@click.option("--answer", hidden=True, is_eager=True, expose_value=False, callback=_answered)
def command(
    facts: Path | None, inventory: str, limit: str, user: str, become: bool, site: tuple[Path, ...], history: str
) -> None:
    """Answer agents about facts, by the Model Context Protocol.

    \b
    nodetune facts -i prod -b -o facts        save facts, by a timer or now
    nodetune mcp --facts facts                what the agent's program starts; it speaks on standard input and output
    nodetune mcp -i prod -b                   the agent may also have the facts of these hosts read, and of no others

    Reads only: it has no tool that changes a host, and with --facts none that contacts one. Settings files do not count.
    """
    given = {"--limit": limit, "--user": user}
    hosts = ["-i", inventory, *(f"{name}={value}" for name, value in given.items() if value), *["-b"] * become]
    if (facts is None) == (not inventory):
        raise click.UsageError("give --facts, or -i with the hosts that agents may ask about")
    if facts and len(hosts) > 2:
        raise click.UsageError("--limit, --user and --become need -i")
    if not importlib.util.find_spec("mcp"):
        raise UserError("the library mcp is not installed here: install nodetune with its extra: nodetune[mcp]")
    from nodetune.cli import agent_tools

    known = str(Path(history).absolute()) if history and "://" not in history else history
    files = [str(path.absolute()) for path in site]
    if facts:
        agent_tools.server(agent_tools.Sources(str(facts.absolute()), files, known)).run()
        return
    from nodetune.hosts.inventory import selection

    selection.targets(inventory, limit or None)  # a wrong name is an error now, not in an answer to the agent
    with tempfile.TemporaryDirectory(prefix="nodetune-") as folder:
        agent_tools.server(agent_tools.Sources(f"{folder}/facts", files, known, hosts)).run()
