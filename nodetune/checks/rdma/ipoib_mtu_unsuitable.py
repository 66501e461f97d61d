"""The MTU of an IPoIB link does not suit its mode.

Why it matters: In datagram mode, a packet is one InfiniBand packet: 4092 bytes on a fabric with 4 KiB MTU, 2044 with 2
KiB. The usual Ethernet value of 9000 is not an IPoIB value. Connected mode allows 65520 and is pointless with less;
newer
cards offer only datagram mode, with offloads that more than make up for it. NCCL's data does not use IPoIB, but its
bootstrap and storage clients do.
Confirm manually: grep . /sys/class/net/ib*/mode /sys/class/net/ib*/mtu
Side effects of the fix: The link restarts; all hosts of the IPoIB network must agree.
Sources: https://docs.kernel.org/infiniband/ipoib.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Absent, Check, Empty, FactsView, manual

DATAGRAM = (2044, 4092)


def observe(facts: FactsView) -> dict[str, str] | Absent:
    links = {name: link for name, link in facts["rdma.ipoib"].items() if link["up"]}
    return {name: _unsuitable(link) for name, link in links.items()} or Absent("no IP-over-InfiniBand link is up")


def _unsuitable(link: dict[str, Any]) -> str:
    mode, mtu = link["mode"], link["mtu"]
    good = mtu in DATAGRAM if mode == "datagram" else mtu > max(DATAGRAM)
    return "" if good else f"{mode} mode with MTU {mtu}"


CHECK = Check(
    needs=("rdma.ipoib",),
    observe=observe,
    accept=Empty("datagram with 4092 or 2044, or connected with 65520"),
    remedy=manual(
        "ip link set LINK mtu 4092 (2044 on a fabric with 2 KiB MTU), or for connected mode: echo connected > "
        "/sys/class/net/LINK/mode; ip link set LINK mtu 65520. Keep it in NetworkManager (infiniband.mtu) or netplan."
    ),
    severity="low",
)
