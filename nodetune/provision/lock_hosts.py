"""Lock versions: ask hosts which ones they would install, and merge them into the lock file."""

from collections.abc import Sequence
from dataclasses import dataclass

from nodetune.config import site as site_files
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.foundation.request import RequestError
from nodetune.foundation.stage_output import Show
from nodetune.provision import lock, preflight, resolve
from nodetune.provision.lock import Lock
from nodetune.provision.request import LockRequest
from nodetune.provision.resolve import Gathered, Resolution
from nodetune.remote.selected_hosts import selected_hosts


@dataclass(frozen=True)
class LockReport:
    """The answers of hosts, and the lock before and after."""

    failed: Sequence[Resolution]
    gathered: Gathered
    old: Lock
    new: Lock
    code: int


def run(request: LockRequest, show: Show) -> LockReport:
    """Ask hosts, and write the lock file if there is one. Raise FileError, InventoryError, RequestError, OSError."""
    site = preflight.site_of(site_files.read(request.site), request.site)
    if request.driver and not request.driver.startswith(f"{site.branch}."):
        raise RequestError(f"--driver {request.driver} is not in branch {site.branch}, which {site.file} requires")
    old = lock.read(request.output) if request.output and request.output.exists() else {}
    targets = selected_hosts(request.connection, show.detail)
    with show.phase("lock", len(targets)) as phase:
        answers = resolve.ask(targets, request.connection, site, phase.heard, request.driver or "")
    gathered = resolve.gathered(answers)
    new = lock.merged(old, gathered.found)
    if request.output and gathered.found and new != old and not request.check:
        lock.write(request.output, new)
    failed = [each for each in answers if each.problem]
    differs = END_STATE_MISSED if gathered.disagreeing or (request.check and new != old) else OK
    return LockReport(failed, gathered, old, new, max((each.code for each in failed), default=differs))
