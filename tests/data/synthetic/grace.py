"""A compute tray of a GB200 NVL72: two Grace CPUs with 64 KiB pages, four GPUs on NVLink-C2C, IMEX, the switches elsewhere.

Set up as NVIDIA's guide for Grace says, except that automatic NUMA balancing was forgotten, the memory lock of sessions
is small, and one of the four InfiniBand ports has no cable.
"""

from tests.data.synthetic import gpus, ubuntu
from tests.data.synthetic.build import Machine
from tests.data.synthetic.hgx_h200 import SLURM_TUNED, SYSCTLS
from tests.data.synthetic.plant import ROOT_PORT, Host

KERNEL, DRIVER, MODEL = "6.8.0-1028-nvidia-64k", "580.178.04", "NVIDIA GB200"
GPUS = ("0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0")
NICS = ("0000:03:00.0", "0002:03:00.0", "0010:03:00.0", "0012:03:00.0")
GRACE = "CPU implementer : 0x41\nCPU part : 0xd4f\nFeatures : fp asimd evtstrm aes sve2"
MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "mlx5_core", "mlx5_ib", "ib_core", "nvme")
GPU_NODES = {2 + 8 * gpu + slice_: 0 if slice_ else 193986560 for gpu in range(4) for slice_ in range(8)}
"""The first of each GPU's eight nodes holds its memory; the others are for MIG instances."""


def machine(name):
    host = Host({"/sys/class/dmi/id/sys_vendor": "NVIDIA", "/sys/class/dmi/id/product_name": "GB200 NVL"})
    frequency = {"scaling_driver": "cppc_cpufreq", "scaling_governor": "performance"}
    host.cpus(2, 72, 1, GRACE, {"WFI": (1, 0)}, frequency, {0: 502000000, 1: 502400000, **GPU_NODES}, page_kb=64)
    for index, bdf in enumerate(GPUS):
        root = bdf[:4] + ":00:00.0"
        host.pci(root, [], "0604 10de 22b8", index // 2, "pcieport", (16, 1), (32, 16), port=ROOT_PORT)
        folder = host.pci(
            bdf, [root], "0302 10de 2941", index // 2, "nvidia", (16, 1), (32, 16), group=(index, "DMA-FQ")
        )
        host.put(folder, resource="0x660000000000 0x660003ffffff 0x14220c\n" + "0x0 0x0 0x0\n" * 5)
        host.irqs(folder, ["nvidia"] * 6, host.local[index // 2])
    gpus.proc(host, GPUS, MODEL)
    links = _network(host)
    for number in range(2):
        root, bdf = f"000{4 + number}:00:00.0", f"000{4 + number}:01:00.0"
        host.pci(root, [], "0604 10de 22b8", 0, "pcieport", (16, 4), (32, 4), port=ROOT_PORT)
        drive = host.pci(bdf, [root], "0108 144d a80a", 0, "nvme", (16, 4), group=(20 + number, "DMA-FQ"))
        host.disk(f"nvme{number}n1", drive, 3840, "SAMSUNG MZTL33T8HCLS", read_ahead=4096, number=f"259:{number}")
        host.irqs(drive, [f"nvme{number}q{queue}" for queue in range(73)], host.local[0])
        host.put(f"/sys/fs/ext4/nvme{number}n1", errors_count=0)
    host.put("/sys/class/iommu", **{f"smmu3.0x00000{unit}1000000000": "" for unit in (1, 2, 5, 6)})
    tuned = {key: each for key, each in SYSCTLS.items() if "numa_balancing" not in key}
    arguments = "root=/dev/nvme0n1p2 ro init_on_alloc=0 iommu.passthrough=0"
    ubuntu.base(
        host,
        KERNEL,
        arguments,
        1004400000,
        0,
        tuned,
        links,
        MODULES,
        DRIVER,
        page_kb=64,
        clock="arch_sys_counter",
        arch="aarch64",
    )
    ubuntu.mountinfo(
        host,
        {
            "/": "259:0 ext4 /dev/nvme0n1p2 relatime",
            "/raid": "259:1 ext4 /dev/nvme1n1 noatime",
            "/dev/shm": "0:25 tmpfs tmpfs nosuid,nodev",
        },
    )
    host.files["/proc/net/route"] = (
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU\nenP6p1s0f0np0 00000000 010200C0 0003 0 0 100 00000000 0\n"
        "enP6p1s0f0np0 000200C0 00000000 0001 0 0 100 00FFFFFF 0"
    )
    _software(host, name)
    return Machine(
        note="no such machine was read; the description of a GB200 NVL72 compute tray, nearly tuned, seen by the real collectors",
        host=host,
        kernel=KERNEL,
        arch="aarch64",
        page_size=65536,
        units={**ubuntu.UNITS, **UNITS, "systemd-timesyncd": None, "irqbalance": None},
        running=(*ubuntu.RUNNING, "slurmd", "nvidia-imex", "nvidia-dcgm"),
        commands={
            "scontrol -o show node": "Gres=gpu:gb200:4 State=IDLE CfgTRES=cpu=144",
            "systemctl show --property=DefaultLimit": "DefaultLimitMEMLOCK=infinity\nDefaultLimitMEMLOCKSoft=infinity",
            "loginctl show-session": "RemoveIPC=no",
            "modinfo nvidia": f"version:        {DRIVER}",
            "modinfo": "srcversion:     0000000000000000",
        },
        space={"/": (3700, 22), "/raid": (3700, 5), "/dev/shm": (514, 1)},
        ethtool={"enP6p1s0f0np0": BLUEFIELD},
        gpus=gpus.replay(GPUS, "2941", DRIVER, _answers(), {"nvmlDeviceGetBAR1MemoryInfo": gpus.NOT_SUPPORTED}),
    )


UNITS = {
    "slurmd": "/usr/sbin/slurmd -D -s",
    "nvidia-imex": "/usr/bin/nvidia-imex -c /etc/nvidia-imex/config.cfg",
    "nvidia-dcgm": "/usr/bin/nv-hostengine -n",
    "chrony": "/usr/sbin/chronyd -F 1",
    "nvidia-persistenced": "/usr/bin/nvidia-persistenced --user nvidia-persistenced --uvm-persistence-mode --verbose",
}
BLUEFIELD = {
    "driver_info": {"driver": "mlx5_core", "version": KERNEL, "firmware": "32.43.8002", "bus": "0006:01:00.0"},
    "coalescing": {
        "rx_usecs": 8,
        "rx_frames": 128,
        "tx_usecs": 8,
        "tx_frames": 128,
        "adaptive_rx": True,
        "adaptive_tx": True,
    },
    "rings": {"rx_max": 8192, "tx_max": 8192, "rx": 8192, "tx": 8192},
    "pause": {"autoneg": False, "rx": False, "tx": False},
    "channels": {"rx_max": 0, "tx_max": 0, "combined_max": 63, "rx": 0, "tx": 0, "combined": 63},
}


def _network(host):
    for rail, bdf in enumerate(NICS):
        root = bdf[:4] + ":00:00.0"
        host.pci(root, [], "0604 10de 22b1", rail // 2, "pcieport", port=ROOT_PORT)
        folder = host.pci(bdf, [root], "0207 15b3 1021", rail // 2, "mlx5_core", group=(10 + rail, "DMA-FQ"))
        unplugged = {"state": "1: DOWN", "sm": 0} if rail == 3 else {}
        host.rdma(f"mlx5_{rail}", folder, "400 Gb/sec (4X NDR)", **unplugged)
        host.net(f"ibP{int(bdf[:4], 16)}p3s0", folder, 400000, 4092, up=False, kind=32, mode="datagram")
        host.irqs(folder, [f"mlx5_comp{number}@pci:{bdf}" for number in range(63)], host.local[rail // 2])
    host.files[folder + "/infiniband/mlx5_3/ports/1/phys_state"] = "2: Polling"
    host.pci("0006:00:00.0", [], "0604 10de 22b1", 0, "pcieport", port=ROOT_PORT)
    card = host.pci("0006:01:00.0", ["0006:00:00.0"], "0200 15b3 a2dc", 0, "mlx5_core", group=(16, "DMA-FQ"))
    host.net("enP6p1s0f0np0", card, 200000, 9000)
    host.rdma("mlx5_4", card, "200 Gb/sec (4X HDR)", "Ethernet", "enP6p1s0f0np0", firmware="32.43.8002")
    host.put(card + "/infiniband/mlx5_4", board_id="MT_0000000884")
    host.irqs(card, [f"mlx5_comp{number}@pci:0006:01:00.0" for number in range(63)], host.local[0])
    host.net("lo", None, 0, 65536, kind=772)
    return ["enP6p1s0f0np0"]


def _software(host, name):
    host.pids = {"slurmd": 3021, "nvidia-imex": 2200, "nv-hostengine": 2300, "nvidia-persistenced": 2099}
    host.process(3021, "/usr/sbin/slurmd -D -s", ubuntu.RAISED)
    host.process(2455, "/usr/sbin/sshd -D", ubuntu.LIMITS)
    host.process(2200, UNITS["nvidia-imex"])
    host.process(2300, UNITS["nvidia-dcgm"])
    host.process(2099, UNITS["nvidia-persistenced"], status="Cpus_allowed_list:\t0-143\nMems_allowed_list:\t0-33")
    host.put("/run/nvidia-persistenced", **{"nvidia-persistenced.pid": 2099})
    node = f"NodeName={name} CPUs=144 Sockets=2 CoresPerSocket=72 ThreadsPerCore=1 Gres=gpu:gb200:4"
    host.put(
        "/etc/slurm",
        **{
            "slurm.conf": f"ClusterName=example\nGresTypes=gpu\nTopologyPlugin=topology/block\n{SLURM_TUNED}\n{node} CoreSpecCount=2",
            "gres.conf": "AutoDetect=nvml",
            "cgroup.conf": "ConstrainCores=yes\nConstrainRAMSpace=yes\nConstrainDevices=yes",
        },
    )
    host.put("/usr/lib/aarch64-linux-gnu/slurm-wlm", **{"gpu_generic.so": "", "gpu_nvml.so": ""})
    for tool in ("slurmd", "scontrol", "modinfo"):
        host.files["/usr/bin/" + tool] = ""
    host.files["/dev/nvidia-caps-imex-channels/channel0"] = ""
    host.files["/etc/security/limits.conf"] = "* - nofile 1048576"
    host.files["/etc/systemd/logind.conf"] = "[Login]\nRemoveIPC=no"
    host.files["/etc/systemd/system.conf"] = "[Manager]\nDefaultLimitMEMLOCK=infinity"
    host.files["/etc/apt/apt.conf.d/20auto-upgrades"] = 'APT::Periodic::Unattended-Upgrade "0";'


def _answers():
    """Blackwell on C2C: fifth generation NVLink to switches in another tray, memory as a NUMA node."""
    answers = {
        **gpus.model(MODEL, 189471, 10, (200, 1200), 2062, 3996, "97.00.82.00.00", 5),
        "nvmlDeviceGetCurrPcieLinkWidth": 1,
        "nvmlDeviceGetC2cModeInfoV": {"isC2cEnabled": 1},
        "nvmlDeviceGetAddressingMode": 2,
        "nvmlDeviceGetPowerUsage": 181000,
        "field 164": 50000,
        **{f"field {number}": 0 for number in (206, 207, 208, 214, 215, 219, 221)},
        **{f"nvmlDeviceGetNvLinkVersion({link})": 7 for link in range(18)},
    }
    for index in range(4):
        answers[f"nvmlDeviceGetNumaNodeId GPU{index}"] = 2 + 8 * index
        healthy = {"cliqueId": 32766, "healthMask": 0x1AA, "healthSummary": 1, "clusterUuid": tuple(range(1, 17))}
        answers[f"fabric GPU{index}"] = healthy
    return answers
