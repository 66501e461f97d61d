"""An AWS instance has fewer Elastic Fabric Adapters (EFA) than network cards.

Why it matters: Each network card of the type carries a part of the bandwidth, and only those with an EFA carry NCCL
traffic. With one EFA of 32, jobs over several nodes get a small part of the network. The adapters are chosen at launch,
and the first one alone is easily taken for all. An instance without any EFA is taken for one that works alone.
Confirm manually: lspci -nd 1d0f: | grep -c efa; ls /sys/class/infiniband
Side effects of the fix: Network interfaces of these types are chosen at launch: the instance has to be launched again.
Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html ;
https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html (network cards)
"""

from nodetune import data
from nodetune.api import VIRTUAL, Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.shared.pci_devices import efa_adapters


def observe(facts: FactsView) -> str:
    cards = data.network_cards_of_machine(facts["host.dmi.product_name"])
    adapters = len(efa_adapters(facts["pci.devices"]))
    if not cards or not adapters:
        raise FactAbsentError("not an AWS instance with EFA whose network cards are known")
    return f"{adapters} of {cards}" if adapters < cards else ""


CHECK = Check(
    needs=("pci.devices", "host.dmi.product_name"),
    observe=observe,
    accept=Empty("an EFA on each network card"),
    applies=(VIRTUAL,),
    remedy=manual(
        "Launch the instance again with an EFA or EFA-only interface on every network card (network card index 0 to "
        "N-1), from a launch template or the node group that makes them."
    ),
    severity="medium",
    name="EFA cards",
    cost="bandwidth",
)
