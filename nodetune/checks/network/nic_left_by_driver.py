"""A network card has no driver, and others of its model have one.

Why it matters: The driver works for this model, so it gave up this card: a fault of the card, its firmware or its slot. Jobs
that use all cards of a node fail, or run with less bandwidth.
Healthy exception: A card that a virtual machine has (vfio) has a driver, and a virtual function may wait without one. Other
models without a driver are not in use: nic-without-driver reports them.
Confirm manually: lspci -nnk | grep -A3 -E '0200|0207'; journalctl -k -b | grep probe
Side effects of the fix: None for other cards.
Sources: https://github.com/PeterSuh-Q3/tinycore-redpill/issues/9 ; https://docs.kernel.org/PCI/sriov-howto.html ;
https://github.com/torvalds/linux (drivers/base/dd.c: probe failed)
"""

from __future__ import annotations

from nodetune.api import Check, Empty, manual
from nodetune.checks.network._drivers import NEEDS, without_driver

CHECK = Check(
    needs=NEEDS,
    observe=lambda facts: without_driver(facts, with_peers=True),
    accept=Empty("the driver of its peers"),
    remedy=manual(
        "Bind the driver again: echo BDF > /sys/bus/pci/drivers/DRIVER/bind. If it refuses (dmesg says why), power the host off "
        "and on, compare the card's firmware with that of its peers, then reseat or replace the card."
    ),
    severity="high",
    part_of=("nic-failed", "pci-device-not-answering"),
    name="network driver",
)
