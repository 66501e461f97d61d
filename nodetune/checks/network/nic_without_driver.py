"""A network card has no driver.

Why it matters: Its driver gave up, is not installed or is kept from loading. The card carries nothing, and tools that list
links do not show that one is missing. Cards that jobs need and whose peers work are reported by nic-left-by-driver.
Confirm manually: lspci -nnk | grep -A3 -E '0200|0207'; journalctl -k -b | grep -E 'probe|qed'
Side effects of the fix: None: it only reports.
Sources: https://github.com/siderolabs/extensions/issues/1040 (QLogic) ;
https://github.com/PeterSuh-Q3/tinycore-redpill/issues/9 (ConnectX-4) ;
https://github.com/torvalds/linux (drivers/base/dd.c: probe failed)
"""

from __future__ import annotations

from nodetune.api import Check, Empty, manual
from nodetune.checks.network._drivers import NEEDS, without_driver

CHECK = Check(
    needs=NEEDS,
    observe=lambda facts: without_driver(facts, with_peers=False),
    accept=Empty("a driver"),
    remedy=manual(
        "Read what the driver logged (dmesg). Without a message, its module is not installed, or it is kept from loading. No "
        "memory region: give the card address space (switch off devices that nobody needs in the firmware setup). Other "
        "errors: update driver and firmware."
    ),
    severity="low",
    name="network driver",
)
