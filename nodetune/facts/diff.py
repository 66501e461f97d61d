"""The differences between two sets of facts or two audits, as values. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nodetune.foundation import by_key

ADDED, GONE, CHANGED, UNREAD = "added", "gone", "changed", "unread"
NEW, WAIVED, OFF = "new", "waived", "off"


@dataclass(frozen=True)
class Change:
    """One difference. `what` is the fact (and its field) or the check; `subject` a device, if there are several."""

    host: str
    kind: str
    what: str
    subject: str = ""
    before: str = ""
    after: str = ""
    severity: str = ""
    title: str = ""


@dataclass(frozen=True)
class Diff:
    """The differences: `lost` and `added` hosts, the changes, and the number of changed readings and identities.

    `states`: hosts that could not be compared, with their state on both sides. `bad`: those whose facts could not be
    read, with the reasons.
    """

    of: str
    lost: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    states: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    compared: int = 0
    readings: int = 0
    rebooted: tuple[str, ...] = ()
    bad: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lost or self.added or self.states or self.changes)


def folded(changes: Iterable[Change]) -> list[tuple[Change, list[str], list[str]]]:
    """Group equal changes as (one of them, the hosts, the devices), in order of first appearance."""
    alike: dict[tuple[str, str, str, str], tuple[Change, dict[str, list[str]]]] = {}
    for each in changes:
        _, hosts = alike.setdefault((each.kind, each.what, each.before, each.after), (each, {}))
        hosts.setdefault(each.host, []).append(each.subject)
    found = []
    for change, hosts in alike.values():
        devices = by_key((tuple(subjects), host) for host, subjects in hosts.items())
        found += [(change, names, [each for each in subjects if each]) for subjects, names in devices.items()]
    return found
