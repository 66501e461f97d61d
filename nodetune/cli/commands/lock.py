"""`nodetune lock`."""

import sys

import click

from nodetune.cli import change_options, proposed_options, requests, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.terminal import Terminal
from nodetune.foundation.request import RequestError
from nodetune.provision.request import LockRequest


@requests.command("lock", LockRequest)
@cli_options.changed_hosts
@change_options.provision_site
@click.option(
    "--driver", metavar="VERSION", help="Lock this driver version (580.159.04) instead of the newest one of the branch."
)
@click.option(
    "-o",
    "--output",
    **cli_options.FILE,
    help="Lock file to write. Entries for other systems are kept.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 4 if the lock file would change.")
@verbosity.progress_option
def command(request: LockRequest) -> int:
    """Lock the package versions that hosts would install.

    \b
    nodetune lock -i gpu01 -b --site site.yml -o versions.lock     review it and commit it
    nodetune lock -i gpu01,gpu17 -b --site site.yml                one host of each system; to standard output
    nodetune lock -i gpu01 -b --site site.yml -o versions.lock --check    look for newer versions

    The package managers of the hosts resolve the versions from the site's repositories, in a separate folder. Changes
    nothing on any host. Name one host of each kind: operating system, with and without NVSwitches.
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 a host returned no versions, or (--check) the file would change.
    """
    from nodetune.provision import lock, lock_hosts
    from nodetune.report.text import provision

    try:
        report = lock_hosts.run(request, Terminal())
    except RequestError as problem:
        raise click.UsageError(str(problem)) from None
    unanswered = {each.host: each.problem for each in report.failed}
    provision.print_unanswered(sys.stderr, unanswered, proposed_options.text(request.connection))
    for line in (*report.gathered.disagreeing, *report.gathered.notes):
        click.echo(line, err=True)
    if report.gathered.found and request.output is None:
        sys.stdout.write(lock.text(report.new))
    elif report.gathered.found:
        provision.print_lock(sys.stdout, report.old, report.new)
    return report.code
