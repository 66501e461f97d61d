"""From the results of other stages to those of a readmission: unknown, unmeasured and unproven never let a host back."""

from nodetune.foundation import text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, TOO_SLOW
from nodetune.provision import results
from nodetune.provision.readmit.replaced_parts import Inventory
from nodetune.provision.record import DONE, StageResult, failed
from nodetune.verify.find_slow import document, labels
from nodetune.verify.find_slow.run import SlowSearch
from nodetune.verify.model import PASS
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import LOAD
from nodetune.verify.unproven import lacking, skipped

MAX_NAMED = 8


def inventory(found: Inventory) -> StageResult:
    """Judge what was exchanged: a part that is gone is missing."""
    if found.gone:
        gone = ", ".join(f"{each.kind} {each.place} ({each.before})" for each in found.gone[:MAX_NAMED])
        return failed(f"gone: {gone}", FINDINGS)
    if found.unread:
        kind, why = next(iter(found.unread.items()))
        return failed(f"serial numbers of the {kind}s cannot be read now: {why}", INCOMPLETE)
    if found.parts == 0:
        return failed("no serial number could be compared: root can read them (-b)", INCOMPLETE)
    told = "; ".join(map(str, found.exchanges[:MAX_NAMED])) or "no part was exchanged"
    return StageResult(
        DONE, f"{text.count(len(found.exchanges), 'part')} exchanged: {told}" if found.exchanges else told
    )


def proved(measured: HostVerification) -> StageResult:
    """Judge figures: all as expected, one of them at least compared with something, and the GPUs measured under load."""
    came = results.proved(measured)
    if came.code == TOO_SLOW or measured.state != "ok":
        return came
    left = skipped(measured)
    if left:
        return failed(f"{left[0].measurement} was not measured: {left[0].reason}", INCOMPLETE)
    if not came.ok:
        return came
    lost = lacking([measured], [LOAD]) if measured.machine.most_gpus else []
    if lost and not any(each.figure.measurement == LOAD for each in measured.verdicts):
        return failed(lost[0], INCOMPLETE)
    if not any(each.status == PASS for each in measured.verdicts):
        return failed(f"{came.message}: no figure has something to be compared with: --baseline", INCOMPLETE)
    return came


def compared(search: SlowSearch, host: str) -> StageResult:
    """Judge a search: the host, or a path of it, must not be named, nor anything left open."""
    named = [labels.name(each.part, search.fleet) for each in search.result.culprits]
    named += [f"{each.host} {each.subject}" for each in search.stragglers]
    code = document.exit_code(search)
    if named:
        mine = [host in search.hosts(each.part) for each in search.result.culprits]
        own = any(mine) or any(each.host == host for each in search.stragglers)
        return failed(f"slow: {', '.join(named[:MAX_NAMED])}", code if own else INCOMPLETE)
    lost = [f"{each.host} {each.state}: {each.message}" for each in search.unreached]
    if lost:
        return failed(f"not compared: {lost[0]}", INCOMPLETE)
    if code:
        why = (
            "undecided"
            if search.result.doubts
            else "the hosts as one are short"
            if search.shortfall
            else "no proof run"
        )
        return failed(f"{why} (find-slow.json): try again, or --with others", code)
    return StageResult(DONE, f"with {', '.join(name for name in search.fleet.nodes if name != host)}")
