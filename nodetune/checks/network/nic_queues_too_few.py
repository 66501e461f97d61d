"""A network card has too few queues for its traffic.

Why it matters: One queue is served by one CPU core, and one core moves a few tens of Gb/s at best. Images for small
virtual machines, crash kernels and some drivers leave a single queue.
Confirm manually: ethtool -l eth0
Side effects of the fix: The link restarts, and its new interrupts must be placed: plan again afterwards. The fix sets as
many queues as CPUs next to the card, at most 16. It goes back by itself if the host no longer answers.
Sources: https://docs.kernel.org/networking/scaling.html ;
https://www.freedesktop.org/software/systemd/man/latest/systemd.link.html (CombinedChannels=)
"""

from nodetune.api import Check, Empty, FactsView, net_link
from nodetune.checks.shared.network_links import fast

ENOUGH = 8


def observe(facts: FactsView) -> dict[str, str]:
    channels, local = facts["net.channels"], facts["net.local_cpus"]
    links = [name for name in fast(facts["net.links"]) if name in channels and name in local]
    return {name: _few(channels[name], local[name]) for name in links}


def _few(channel: dict[str, int], cpus: int) -> str:
    possible = max(channel["combined_max"], channel["rx_max"])
    queues = channel["combined"] + channel["rx"]
    return "" if queues >= min(possible, cpus, ENOUGH) else f"{queues} of {possible} possible queues"


CHECK = Check(
    needs=("net.links", "net.channels", "net.local_cpus"),
    observe=observe,
    accept=Empty("at least 8 queues, where card and CPUs allow"),
    set="local",
    remedy=net_link("channels"),
    severity="low",
)
