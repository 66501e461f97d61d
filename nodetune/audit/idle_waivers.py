"""Waivers that waive no finding of an audit although their check fails there: they ended, or name none of its hosts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nodetune.api.model import HostResult, Waiver
from nodetune.config import site as site_files
from nodetune.config.overlay import Overlay
from nodetune.foundation import by_key


@dataclass(frozen=True)
class IdleWaiver:
    """A waiver without effect. `hosts` are those with the finding: of an ended waiver, the ones that it names."""

    waiver: Waiver
    ended: bool
    hosts: tuple[str, ...]


def idle(site: Overlay, results: Sequence[HostResult], today: str) -> Iterator[IdleWaiver]:
    """Yield the idle waivers of site files. `today` is an ISO date."""
    failing = by_key((found.check, result.host) for result in results for found in result.failing())
    for waiver in site.waivers:
        hosts = failing.get(waiver.id, [])
        mine = tuple(host for host in hosts if site_files.covers(site, waiver, host))
        if mine and waiver.until < today:
            yield IdleWaiver(waiver, True, mine)
        elif hosts and not any(site_files.covers(site, waiver, result.host) for result in results):
            yield IdleWaiver(waiver, False, tuple(hosts))
