"""The command line of one machine: what a GPU server has, as far as QEMU can play it.

Two sockets with a NUMA node each. On each node a PCIe host bridge with root ports, and on these an NVMe drive and a
network adapter with several queues. A machine that is resumed from the template must have the same devices in the same
places, except for NVMe drives: QEMU cannot freeze these, so they are plugged in afterwards.
"""

from pathlib import Path

from tests.machines import place

CPU = "max,vendor=GenuineIntel,family=6,model=143,stepping=8,model-id=Intel(R) Xeon(R) Platinum 8480C"
VCPUS = 8
MEMORY_MIB = 1024
NODES = (0, 1)
FABRIC = (("vmxnet3", "rp01"), ("vmxnet3", "rp11"), ("e1000e", "rp12"))
"""Kind and place of the adapters ens2, ens10 and ens11. Of the kinds that QEMU has, only e1000e changes its rings."""


def command(number: int, folder: Path, image: Path, disks: dict[str, Path], cache: str) -> list[str]:
    """The arguments that hold for every start of a machine, without memory and NVMe drives."""
    return [
        *("qemu-system-x86_64", "-name", place.name(number), "-accel", place.ACCELERATION),
        *("-machine", "q35,hpet=off", "-nodefaults", "-nographic", "-cpu", CPU),
        *("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"),  # native hot-plug, as servers have it
        *("-smp", f"{VCPUS},sockets=2,cores={VCPUS // 4},threads=2", "-m", str(MEMORY_MIB)),
        *("-chardev", f"file,id=console,path={folder}/serial.log,append=on", "-serial", "chardev:console"),
        *("-qmp", f"unix:{folder}/qmp,server,nowait"),
        *("-smbios", "type=1,manufacturer=ExampleCorp,product=GPU-Server-8x,serial=SN00001"),
        *("-acpitable", f"file={image}/cpus.aml"),
        *_disk("root", disks["root"], cache, "addr=0x8,bootindex=0"),
        *_disk("swap", disks["swap"], cache, "addr=0x9"),
        *("-netdev", f"user,id=management,hostfwd=tcp:{place.address(number)}:{place.PORT}-:22"),
        *("-device", "virtio-net-pci,netdev=management,bus=pcie.0,addr=0x10,mac=52:54:00:10:00:fa,romfile="),
        *_bridges(),
        *_fabric(),
    ]


def _disk(name: str, file: Path, cache: str, where: str) -> list[str]:
    drive = f"if=none,id={name},file={file},format=qcow2,cache={cache}"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive={name},bus=pcie.0,{where}"]


def _bridges() -> list[str]:
    found = []
    for node in NODES:
        bridge = f"pxb-pcie,id=px{node},bus_nr={(0x20, 0x80)[node]},bus=pcie.0,addr={hex(2 + node)},numa_node={node}"
        found += ["-device", bridge]
        for port in range(3):
            slot = node * 8 + port + 1
            found += ["-device", f"pcie-root-port,id=rp{node}{port},bus=px{node},chassis={slot},slot={slot}"]
    return found


def _fabric() -> list[str]:
    found = []
    for number, (kind, port) in enumerate(FABRIC):
        found += ["-netdev", f"socket,id=fabric{number},mcast=230.0.0.{number + 1}:12340,localaddr=127.0.0.1"]
        found += ["-device", f"{kind},netdev=fabric{number},bus={port},mac=52:54:00:2{number}:00:fa,romfile="]
    return found


def memory(files: Path | None = None, *, keep: bool = False) -> list[str]:
    """The memory of both nodes: new, or that of the files `files`.mem0 and .mem1; `keep` writes changes back to them."""
    half, found = MEMORY_MIB // 2, []
    for node in NODES:
        where = f"file,mem-path={files}.mem{node},share={'on' if keep else 'off'}" if files else "ram"
        found += ["-object", f"memory-backend-{where},id=m{node},size={half}M"]
        first, last = node * VCPUS // 2, (node + 1) * VCPUS // 2 - 1
        found += ["-numa", f"node,nodeid={node},cpus={first}-{last},memdev=m{node}"]
    return [*found, "-numa", "dist,src=0,dst=1,val=21"]


def nvme(node: int) -> dict[str, str]:
    """The NVMe drive of a node, as a QEMU device on the drive of the same name."""
    return {
        "driver": "nvme",
        "id": f"nvme{node}",
        "serial": f"NVME{node}",
        "drive": f"drive{node}",
        "bus": f"rp{node}0",
        "max_ioqpairs": str(VCPUS),
    }


def nvme_drive(node: int, file: Path, cache: str) -> str:
    return f"if=none,id=drive{node},file={file},format=qcow2,cache={cache}"


def with_nvme(disks: dict[str, Path], cache: str) -> list[str]:
    """The arguments for both NVMe drives at a cold start."""
    found = []
    for node in NODES:
        device = ",".join(f"{key}={value}" for key, value in nvme(node).items()).removeprefix("driver=")
        found += ["-drive", nvme_drive(node, disks[f"nvme{node}"], cache), "-device", device]
    return found
