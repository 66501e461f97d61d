"""`nodetune mcp`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from nodetune.cli import options
from nodetune.foundation import UserError


@click.command("mcp")
@click.option(
    "--facts", **options.SAVED, required=True, metavar="FILE|DIR", help="Saved facts that agents may ask about."
)
@click.option("--site", multiple=True, **options.FILE, help="Site file. May be repeated.")
@click.option("--history", default="", metavar="FILE|URL", help="History that agents may ask about.")
def command(facts: Path, site: tuple[Path, ...], history: str) -> None:
    """Answer agents about saved facts, by the Model Context Protocol.

    \b
    nodetune facts -i prod -b -o facts        save facts, by a timer or now
    nodetune mcp --facts facts                what the agent's program starts; it speaks on standard input and output

    Reads only: it contacts no host and has no tool that changes one. Settings files do not count.
    """
    if not importlib.util.find_spec("mcp"):
        raise UserError("the library mcp is not installed here: install nodetune with its extra: nodetune[mcp]")
    from nodetune.cli import agent_tools

    known = str(Path(history).absolute()) if history and "://" not in history else history
    sources = agent_tools.Sources(str(facts.absolute()), [str(path.absolute()) for path in site], known)
    agent_tools.server(sources).run()
