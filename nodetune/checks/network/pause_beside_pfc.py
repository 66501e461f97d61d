"""Global pause frames and PFC are both on for a network link.

Why it matters: Global pause stops everything on the link, including the lossless class of RoCE. Priority flow control
(PFC) exists to avoid exactly that. A port does one or the other; which one depends on card and switch.
Confirm manually: ethtool -a eth0; dcb pfc show dev eth0 (or mlnx_qos -i eth0)
Side effects of the fix: The link may restart. Traffic outside the lossless priorities can then be dropped.
Sources: https://1.ieee802.org/dcb/802-1qbb/ ; https://github.com/NVIDIA/doroce-linux ;
https://docs.nvidia.com/networking/display/MLNXOFEDv451010/Flow+Control
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import in_use


def observe(facts: FactsView) -> dict[str, str]:
    pause, dcb = facts["net.pause"], facts["net.dcb"]
    links = [name for name in in_use(facts["net.links"]) if name in pause and name in dcb]
    return {name: _both(pause[name], dcb[name]["pfc"]) for name in links}


def _both(pause: dict[str, bool], priorities: list[int]) -> str:
    directions = [each for each in ("rx", "tx") if pause[each]]
    if not directions or not priorities:
        return ""
    return f"global pause {'+'.join(directions)} and PFC on priority {', '.join(map(str, priorities))}"


CHECK = Check(
    needs=("net.links", "net.pause", "net.dcb"),
    observe=observe,
    accept=Empty("either global pause or PFC"),
    remedy=manual(
        "ethtool -A LINK autoneg off rx off tx off. Keep it with RxFlowControl=no and TxFlowControl=no in a file "
        "/etc/systemd/network/*.link. Make sure that the switch port has global pause off and the same PFC priority."
    ),
    severity="medium",
)
