"""A link has global pause frames on although priority flow control is in use.

Why it matters: Global pause stops everything on the link, the lossless class of RoCE included, and priority flow
control exists to avoid just that. A port does one or the other; which one depends on card and switch.
Confirm by hand: ethtool -a eth0; dcb pfc show dev eth0 (or mlnx_qos -i eth0)
Side effects of the fix: The link may restart. Traffic outside the lossless priorities can then be dropped.
Sources: https://1.ieee802.org/dcb/802-1qbb/ ; https://github.com/NVIDIA/doroce-linux ;
https://docs.nvidia.com/networking/display/MLNXOFEDv451010/Flow+Control
"""

from nodetune.checks.network._links import in_use
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    pause, dcb = facts["net.pause"], facts["net.dcb"]
    links = [name for name in in_use(facts["net.links"]) if name in pause and name in dcb]
    return {name: _both(pause[name], dcb[name]["pfc"]) for name in links}


def _both(pause: dict[str, bool], priorities: list[int]) -> str:
    ways = [way for way in ("rx", "tx") if pause[way]]
    if not ways or not priorities:
        return ""
    return f"global pause {'+'.join(ways)} and PFC on priority {', '.join(map(str, priorities))}"


CHECK = Check(
    needs=("net.links", "net.pause", "net.dcb"),
    observe=observe,
    accept=Empty("one of the two"),
    remedy=manual(
        "ethtool -A LINK autoneg off rx off tx off; keep it with RxFlowControl=no and TxFlowControl=no in a file of "
        "/etc/systemd/network/*.link, and make sure that the switch port has global pause off and the same PFC priority."
    ),
    severity="medium",
)
