"""WEKA is mounted in UDP mode.

Why it matters: With net=udp, WEKA's client sends through the kernel's network stack instead of driving a network card by
itself (DPDK). It is meant for hosts where DPDK cannot be used, and gives less bandwidth at a higher latency.
Confirm manually: grep wekafs /etc/fstab /etc/auto.*; weka local resources
Side effects of the fix: In DPDK mode, the client takes cores and a network function for itself, and must be mounted again.
Sources: https://docs.hitachivantara.com/r/en-us/content-software-for-file/4.2.x/mk-hcsf001/managing-object-stores-filesystem-groups-and-filesystems/mounting-filesystems/advanced-network-configuration-using-mount-options/udp-mode ;
https://docs.weka.io/weka-filesystems-and-object-stores/mounting-filesystems
"""

from __future__ import annotations

from nodetune.api import Absent, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> dict[str, str] | Absent:
    mounts = {place for place, point in facts["mounts.points"].items() if point["type"] == "wekafs"}
    if not mounts:
        return Absent("no mount of WEKA")
    configured = {place: each["options"] for place, each in facts["mounts.configured"].items() if place in mounts}
    modes = {place: "UDP" if "net=udp" in options else "not UDP" for place, options in configured.items()}
    return modes or Absent("neither /etc/fstab nor a map of the automounter mounts WEKA")


CHECK = Check(
    needs=("mounts.points", "mounts.configured"),
    observe=observe,
    accept=Equals("not UDP"),
    remedy=manual(
        "If the network card supports DPDK: replace net=udp and num_cores=0 by net=LINK and num_cores=2 (as the cluster's "
        "administrators say) where the mount is configured, then unmount and mount again."
    ),
    severity="info",
)
