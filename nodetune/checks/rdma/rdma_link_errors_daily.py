"""An RDMA link recovers from errors many times a day.

Why it matters: A link that trains again (link_error_recovery) stops all its traffic for milliseconds, and every rank of a
job waits. Local link integrity errors and buffer overruns are packets that the card gave up. A counter of InfiniBand that
is full (15, 255 or 65,535) stays there: it hides whatever comes later.
Confirm manually: perfquery -x; grep . /sys/class/infiniband/*/ports/*/counters/{link_error_recovery,*integrity*,*overrun*}
Side effects of the fix: Work on the cable takes the link down.
Sources: https://github.com/linux-rdma/rdma-core/blob/master/infiniband-diags/etc/error_thresholds (10 each; here for each day) ;
https://github.com/torvalds/linux/blob/master/drivers/infiniband/core/sysfs.c (PORT_PMA_ATTR: how many bits each has)
"""

from nodetune.api import RDMA, Check, Empty, FactsView, manual
from nodetune.checks.shared.rdma_ports import active

A_DAY = 10
DAILY = ("link_error_recovery", "local_link_integrity_errors", "excessive_buffer_overrun_errors")
FULL = {**dict.fromkeys(DAILY, 15), "link_error_recovery": 255, "symbol_error": 65535, "port_rcv_errors": 65535}


def observe(facts: FactsView) -> dict[str, str]:
    counters, days = facts["rdma.counters"], max(1.0, facts["host.uptime_s"] / 86400)
    return {name: _text(counters[name], days) for name in active(facts["rdma.ports"]) if name in counters}


def _text(counted: dict[str, int], days: float) -> str:
    often = [f"{name} {counted[name]:,}" for name in DAILY if counted.get(name, 0) > A_DAY * days]
    full = [f"{name} {most:,}" for name, most in FULL.items() if counted.get(name) == most]
    found = [f"{', '.join(often)} in {days:.1f} days"] if often else []
    return "; ".join(found + ([f"full: {', '.join(full)}"] if full else []))


CHECK = Check(
    needs=("rdma.ports", "rdma.counters", "host.uptime_s"),
    observe=observe,
    accept=Empty(f"at most {A_DAY} a day, and no counter full"),
    applies=(RDMA,),
    part_of="rdma-error-rate-high",
    remedy=manual(
        "Clear the counters (perfquery -R), run traffic, and read them again after a day. If they grow, swap the cable or "
        "optics with those of a good port, and see which side the errors follow."
    ),
    severity="low",
    cost="hardware",
)
