"""RDMA cards of the same model run different firmware.

Why it matters: Cards with different firmware differ in defaults, in congestion control and in bugs. One odd card among
eight takes days to find. One version for all makes the host's behaviour explainable.
Confirm manually: grep . /sys/class/infiniband/*/fw_ver /sys/class/infiniband/*/board_id
Side effects of the fix: Firmware takes effect after a reset of the card or a reboot.
Sources: https://docs.nvidia.com/networking/display/mftv4310/mlxfwmanager+%E2%80%93+Firmware+Update+and+Query+Tool ;
https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
"""

from nodetune.api import RDMA, Check, Empty, FactsView, manual
from nodetune.checks.shared.rdma_ports import usual


def observe(facts: FactsView) -> dict[str, str]:
    models: dict[str, dict[str, str]] = {}
    for name, device in facts["rdma.devices"].items():
        if device["board_id"] and device["firmware"] and not device["virtual_function"]:
            models.setdefault(device["board_id"], {})[name] = device["firmware"]
    return {name: text for versions in models.values() for name, text in _unequal(versions).items()}


def _unequal(versions: dict[str, str]) -> dict[str, str]:
    common = usual(versions.values())
    return {name: "" if version == common else f"{version}, others {common}" for name, version in versions.items()}


CHECK = Check(
    needs=("rdma.devices",),
    observe=observe,
    accept=Empty("the firmware of its peers"),
    applies=(RDMA,),
    remedy=manual(
        "mlxfwmanager --query, then bring all cards of the model to the version that the driver release names; "
        "mlxfwreset -d DEVICE reset or reboot."
    ),
    severity="low",
    cost="setting",
)
