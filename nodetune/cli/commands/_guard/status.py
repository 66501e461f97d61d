"""`nodetune guard status`."""

import sys
import time
from collections import Counter
from collections.abc import Sequence

import click

from nodetune.cli import host_options, last_results, proposed_options, requests
from nodetune.cli import options as cli_options
from nodetune.cli.terminal import Terminal
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.guard.deploy import conclude, document, status
from nodetune.guard.deploy.request import StatusRequest
from nodetune.guard.deploy.status import Status
from nodetune.history import keeping
from nodetune.report.text import guard


@requests.command("status", StatusRequest)
@click.argument("nodes", nargs=-1)
@host_options.slurm_nodes
@cli_options.history
@cli_options.notify
@cli_options.printed_format
def command(request: StatusRequest, history: str, notify: str, output_format: str) -> int:
    """Show guard mode, last run and drains of nodes.

    \b
    nodetune guard status                    all nodes, by their names
    nodetune guard status 'gpu[001-016]'     only these nodes
    nodetune guard status -i prod            connect as the inventory specifies

    Exit code: 0 done, 2 usage, 3 a node was not reached.
    """
    found, asked = status.run(request), proposed_options.text(request.connection)
    if output_format == "json":
        click.echo(document.status(found), nl=False)
    else:
        guard.print_status(sys.stdout, found, asked)
    now = int(time.time())
    known = conclude.concluded(found, now)
    if history:
        done = [*conclude.actions(found), *conclude.resumed(found, keeping.done(history, Terminal()), now)]
        keeping.keep(history, Terminal(), concluded=known, actions=done)
    if notify:
        from nodetune.cli import receivers

        receivers.tell(notify, known, conclude.SOURCE)
    if not request.nodes:
        _record(asked, found)
    return OK if all(each.guard for each in found) else INCOMPLETE


def _record(asked: str, found: Sequence[Status]) -> None:
    """Keep what the overview says about the guard."""
    guards = [each.guard for each in found if each.guard]
    modes = Counter(each.installed.get("mode") or "without a guard" for each in guards)
    drained = sum(each.ours for each in guards)
    told = {"nodes": len(found), "lost": len(found) - len(guards), "modes": modes, "drained": drained}
    last_results.keep("guard status", asked, told)
