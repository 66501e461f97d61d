"""From a readmission to what it concludes by itself, the parts that are gone, and to what was done. Pure."""

from collections.abc import Iterator

from nodetune import __version__
from nodetune.api import faults
from nodetune.api.conclusion import Action, Conclusion, Examination, Examined, Judged, Next
from nodetune.api.device import Device
from nodetune.api.model import HostFacts
from nodetune.provision.readmit import replaced_parts
from nodetune.provision.readmit.readmission import Readmission
from nodetune.provision.readmit.replaced_parts import Inventory, ReplacedPart

SOURCE, GONE = "readmit", "part-gone"
BY, REPAIRED = "nodetune readmit", "repaired"
KINDS = {"GPU": "gpu", "NVMe drive": "drive", "NIC": "nic"}


def concluded(host: str, found: Inventory, facts: HostFacts | None, now: int) -> Examined:
    """Return the parts of a host without a successor. `facts`: those of the host now."""
    unjudged = [
        f"serial numbers of the {kind}s cannot be read now: {why}" for kind, why in (found.unread or {}).items()
    ]
    there = frozenset(replaced_parts.serials(facts)) if facts else frozenset()
    proven = there | {name for each in found.exchanges if each.after for name in (each.before, each.place) if name}
    looked = Examination(
        SOURCE, host, now, __version__, (Judged(GONE, only=proven),), {GONE: unjudged[0]} if unjudged else {}
    )
    return Examined(tuple(_gone(host, each, now) for each in found.gone), (looked,))


def _gone(host: str, part: ReplacedPart, now: int) -> Conclusion:
    return faults.found(
        GONE,
        (host,),
        f"{faults.row(GONE).title}: {part.kind} {part.place} ({part.before})",
        now,
        Device(part.place, serial=part.before, kind=KINDS.get(part.kind, "")),
        part.before,
        next=Next("readmit", (host,), text="put it back, or another one in its place"),
    )


def actions(found: Readmission, now: int) -> Iterator[Action]:
    """Yield what was done to the host, for the history."""
    for each in found.inventory.exchanges:
        if each.after:
            yield Action(REPAIRED, found.host, now, BY, each.change, device=each.place)
    if found.is_back:
        yield Action("resumed", found.host, now, BY, "all is proven")
    if not found.missing:
        yield Action("readmitted", found.host, now, BY)
