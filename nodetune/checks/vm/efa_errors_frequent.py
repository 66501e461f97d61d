"""An Elastic Fabric Adapter (EFA) drops or repeats many packets, or fails more often than its peers.

Why it matters: EFA repeats what is lost, so programs only get slower. A peer that ended or hung leaves timeouts on all
adapters alike, and this instance is not at fault; one adapter that has far more of them than its peers has a bad path.
Confirm manually: rdma -p statistic show; grep . /sys/class/infiniband/*/ports/1/hw_counters/{rx_drops,retrans_*,*_events,*_err}
Side effects of the fix: A stopped instance starts on other hardware and loses what is on its local disks.
Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-working-monitor.html ;
https://github.com/amzn/amzn-drivers/tree/master/kernel/linux/efa
"""

from __future__ import annotations

from typing import Any

from nodetune.api import VIRTUAL, Absent, Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import DROPS_LEAST, share
from nodetune.checks.shared.rdma_ports import active, more_than_peers

LIMITS = {"retrans_pkts": ("tx_pkts", 5e-3), "rx_drops": ("rx_pkts", 1e-5)}
"""Counter → the counter of all packets, and the largest sound share of them."""
OF_PEERS = (
    "retrans_timeout_events",
    "impaired_remote_conn_events",
    "unresponsive_remote_events",
    "rdma_read_wr_err",
    "rdma_write_wr_err",
)


def observe(facts: FactsView) -> dict[str, str] | Absent:
    drivers, counters = facts["rdma.devices"], facts["rdma.hw_counters"]
    efa = {
        name: counters[name]
        for name in active(facts["rdma.ports"])
        if drivers[name.rpartition("/")[0]]["driver"] == "efa" and name in counters
    }
    alone = [more_than_peers({port: its[name] for port, its in efa.items() if name in its}) for name in OF_PEERS]
    found = {
        port: _shares(its) + [f"{name} {each[port]}" for name, each in zip(OF_PEERS, alone) if each.get(port)]
        for port, its in efa.items()
    }
    return {port: ", ".join(texts) for port, texts in found.items()} or Absent("no EFA with counters")


def _shares(counted: dict[str, Any]) -> list[str]:
    return [
        f"{name} {share(counted[name], counted.get(whole, 0))} packets"
        for name, (whole, limit) in LIMITS.items()
        if counted.get(name, 0) > max(DROPS_LEAST, limit * counted.get(whole, 0))
    ]


CHECK = Check(
    needs=("rdma.devices", "rdma.ports", "rdma.hw_counters"),
    observe=observe,
    accept=Empty("hardly any, and no more than its peers"),
    applies=(VIRTUAL,),
    remedy=manual(
        "See whether they grow under load, and on other instances of the job at that time: then it is the network or a peer. If "
        "one adapter alone counts them, stop and start the instance, and report its id and the adapter's to AWS."
    ),
    severity="low",
    cost="bandwidth",
)
