"""A Kubernetes node with eight L40S on PCIe: two EPYC sockets, no NVLink, two 200 Gb/s RoCE cards, Docker beside containerd.

Half tuned: the firmware and the kernel are, the kubelet and the network are not. A GPU is not registered with the kubelet,
one NIC lacks the lossless priority, both NICs have addresses of one subnet.
"""

import json

from tests.data.synthetic import gpus, ubuntu
from tests.data.synthetic.build import Machine
from tests.data.synthetic.grace import BLUEFIELD
from tests.data.synthetic.plant import DOWNSTREAM, ROOT_PORT, UPSTREAM, Host

KERNEL, DRIVER, MODEL = "6.8.0-85-generic", "580.178.04", "NVIDIA L40S"
BUSES = (0x01, 0x21, 0x81, 0xA1)
"""Of the four switches' root ports; each has two GPUs, three and four buses on."""
GPUS = tuple(f"0000:{bus + offset:02x}:00.0" for bus in BUSES for offset in (3, 4))
EPYC = (
    "vendor_id : AuthenticAMD\nmodel name : AMD EPYC 9654 96-Core Processor\nmicrocode : 0xa101154\nflags : fpu vme de"
)
MODULES = (
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_peermem",
    "mlx5_core",
    "mlx5_ib",
    "ib_core",
    "nvme",
    "amd64_edac",
)
SYSCTLS = {
    "kernel.numa_balancing": "0",
    "vm.swappiness": "10",
    "vm.max_map_count": "1048576",
    "vm.overcommit_memory": "1",
    "net.ipv4.ip_forward": "1",
}
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd\ncpuManagerPolicy: none\nfailSwapOn: true"
CONTAINERD = """imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.grpc.v1.cri"]
enable_cdi = true
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
SystemdCgroup = true"""


def machine(_):
    host = Host({"/sys/class/dmi/id/sys_vendor": "GIGABYTE", "/sys/class/dmi/id/product_name": "G493-ZB3-AAP1"})
    frequency = {"scaling_driver": "acpi-cpufreq", "scaling_governor": "performance"}
    host.cpus(2, 96, 2, EPYC, {"POLL": (0, 0), "C1": (1, 0), "C2": (800, 1)}, frequency, {0: 792300000, 1: 792540000})
    host.put("/sys/devices/system/cpu/cpufreq", boost=1)
    for number, bus in enumerate(BUSES):
        node, root, upper = number // 2, f"0000:{bus:02x}:01.1", f"0000:{bus + 1:02x}:00.0"
        host.pci(root, [], "0604 1022 14ab", node, "pcieport", port=ROOT_PORT)
        host.pci(upper, [root], "0604 1000 c030", node, "pcieport", port=UPSTREAM)
        for index in range(2):
            lower, bdf = f"0000:{bus + 2:02x}:{index:02x}.0", GPUS[2 * number + index]
            host.pci(
                lower, [root, upper], "0604 1000 c030", node, "pcieport", (2.5, 16), (32, 16), port=DOWNSTREAM, acs=0
            )
            folder = host.pci(
                bdf,
                [root, upper, lower],
                "0302 10de 26b9",
                node,
                "nvidia",
                (2.5, 16),
                (16, 16),
                group=(2 * number + index, "identity"),
            )
            host.put(folder, resource="0x0 0x0 0x0\n0x18000000000 0x18fffffffff 0x14220c\n" + "0x0 0x0 0x0\n" * 4)
            host.irqs(folder, ["nvidia"] * 6, host.local[node])
    gpus.proc(host, GPUS, MODEL)
    links = _network(host)
    for number in range(3):
        root, bdf = f"0000:{0xC1 + 2 * number:02x}:01.1", f"0000:{0xC2 + 2 * number:02x}:00.0"
        host.pci(root, [], "0604 1022 14ab", 1, "pcieport", (16, 4), (32, 4), port=ROOT_PORT)
        folder = host.pci(bdf, [root], "0108 1344 51c3", 1, "nvme", (16, 4), group=(30 + number, "identity"))
        host.disk(f"nvme{number}n1", folder, 7680, "Micron_7450_MTFDKCC7T6TFR", read_ahead=128, number=f"259:{number}")
        host.irqs(folder, [f"nvme{number}q{queue}" for queue in range(129)], host.local[1])
        host.put(f"/sys/fs/ext4/nvme{number}n1", errors_count=3 * (number == 2))
    host.put("/sys/class/iommu", **{f"ivhd{unit}": "" for unit in range(8)})
    for controller in range(2):
        host.put(
            f"/sys/devices/system/edac/mc/mc{controller}",
            seconds_since_reset=1900700,
            ue_noinfo_count=0,
            ce_noinfo_count=0,
        )
        for module in range(12):
            name = f"/sys/devices/system/edac/mc/mc{controller}/dimm{module}"
            host.put(name, dimm_ue_count=0, dimm_ce_count=0, dimm_label=f"mc#{controller}csrow#0channel#{module}")
    ubuntu.base(
        host, KERNEL, "root=/dev/nvme0n1p2 ro iommu=pt amd_iommu=on", 1584840000, 0, SYSCTLS, links, MODULES, DRIVER
    )
    ubuntu.mountinfo(host, {
        "/": "259:0 ext4 /dev/nvme0n1p2 relatime", "/var/lib/containerd": "259:1 ext4 /dev/nvme1n1 relatime",
        "/models": "259:2 ext4 /dev/nvme2n1 relatime", "/dev/shm": "0:25 tmpfs tmpfs nosuid,nodev",
    })  # fmt: skip
    _routes(host, links)
    _software(host)
    return Machine(
        note="no such machine was read; the description of a Kubernetes node with eight L40S on PCIe, half tuned, seen by the real collectors",
        host=host,
        kernel=KERNEL,
        units={
            **ubuntu.UNITS,
            **UNITS,
            "nvidia-persistenced": "/usr/bin/nvidia-persistenced --user nvidia-persistenced --verbose",
        },
        running=(*ubuntu.RUNNING, "containerd", "docker", "kubelet"),
        commands={
            "systemctl show --property=DefaultLimit": "DefaultLimitMEMLOCK=8388608\nDefaultLimitMEMLOCKSoft=8388608",
            "loginctl show-session": "RemoveIPC=yes",
            "modinfo nvidia": f"version:        {DRIVER}",
            "modinfo": "srcversion:     0000000000000000",
        },
        space={"/": (7500, 44), "/var/lib/containerd": (7500, 63), "/models": (7500, 80), "/dev/shm": (811, 1)},
        ethtool={
            link: {**BLUEFIELD, "rings": {"rx_max": 8192, "tx_max": 8192, "rx": 1024, "tx": 1024}} for link in links[:2]
        },
        dcb={links[0]: {"pfc": [3], "dscp_priority": {"26": 3}}, links[1]: {"pfc": [], "dscp_priority": {}}},
        gpus=gpus.replay(
            GPUS,
            "26b9",
            DRIVER,
            _answers(),
            {**gpus.NO_NVLINK, "nvmlDeviceGetMigMode": 3, "nvmlDeviceGetC2cModeInfoV": 3},
        ),
    )


UNITS = {
    "containerd": "/usr/bin/containerd",
    "docker": "/usr/bin/dockerd -H fd://",
    "kubelet": "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml",
}


def _network(host):
    """A 200 Gb/s card on each socket, and a port for management."""
    links = []
    for number, bus in enumerate((0x41, 0xE1)):
        root, bdf, name = f"0000:{bus:02x}:03.1", f"0000:{bus + 1:02x}:00.0", f"enp{bus + 1}s0np0"
        host.pci(root, [], "0604 1022 14ab", number, "pcieport", port=ROOT_PORT)
        folder = host.pci(bdf, [root], "0200 15b3 1021", number, "mlx5_core", group=(20 + number, "identity"), mrrs=512)
        host.net(name, folder, 200000, 9000)
        host.rdma(f"mlx5_{number}", folder, "200 Gb/sec (4X HDR)", "Ethernet", name)
        host.put(f"{folder}/infiniband/mlx5_{number}/tc/1", traffic_class="Global tclass=106")
        host.irqs(folder, [f"mlx5_comp{queue}@pci:{bdf}" for queue in range(63)], host.local[number])
        links.append(name)
    host.pci("0000:e0:05.1", [], "0604 1022 14ab", 1, "pcieport", (5, 1), (16, 1), port=ROOT_PORT)
    manager = host.pci(
        "0000:e4:00.0", ["0000:e0:05.1"], "0200 8086 1533", 1, "igb", (2.5, 1), group=(22, "identity"), mrrs=512
    )
    host.net("eno1", manager, 1000, 1500)
    host.net("cilium_host", None, 10000, 1500)
    host.net("lo", None, 0, 65536, kind=772)
    return [*links, "eno1"]


def _routes(host, links):
    rows = ["eno1 00000000 010200C0 0003 0 0 100 00000000 0", "eno1 000200C0 00000000 0001 0 0 100 00FFFFFF 0"]
    rows += [f"{link} 006433C6 00000000 0001 0 0 100 00FFFFFF 0" for link in links[:2]]
    host.files["/proc/net/route"] = "\n".join(["Iface Destination Gateway Flags RefCnt Use Metric Mask MTU", *rows])


def _software(host):
    host.pids = {"containerd": 1801, "docker": 1900, "kubelet": 2400}
    host.process(1801, UNITS["containerd"], ubuntu.ENGINE_RAISED)
    host.process(1900, UNITS["docker"], ubuntu.ENGINE)
    host.process(2400, UNITS["kubelet"], ubuntu.RAISED)
    host.process(1500, "/usr/sbin/sshd -D", ubuntu.LIMITS)
    host.process(5100, "/usr/bin/nv-hostengine -n")
    host.process(5200, "/usr/bin/nvidia-persistenced --user nvidia-persistenced --verbose")
    for tool in ("containerd", "dockerd", "kubelet", "modinfo", "nvidia-container-runtime", "nvidia-ctk"):
        host.files["/usr/bin/" + tool] = ""
    host.files["/etc/docker/daemon.json"] = json.dumps({"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}})
    host.put("/etc/containerd", **{"config.toml": CONTAINERD})
    host.put("/etc/cdi", **{"nvidia.yaml": 'kind: "nvidia.com/gpu"\npath: /usr/lib/libcuda.so.580.95.05'})
    devices = {"Data": {"RegisteredDevices": {"nvidia.com/gpu": [f"GPU-{index}" for index in range(7)]}}}
    state = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
    host.put("/var/lib/kubelet", **{"config.yaml": KUBELET, "cpu_manager_state": state})
    host.put(
        "/var/lib/kubelet/device-plugins", **{"kubelet_internal_checkpoint": json.dumps(devices), "nvidia-gpu.sock": ""}
    )
    host.put("/dev/char", **{"195:0": ""})
    host.files["/var/lib/dpkg/status"] = "Package: nvidia-driver-580-server-open\nStatus: hold ok installed"
    host.files["/etc/profile.d/nccl.sh"] = "export NCCL_P2P_DISABLE=1\nexport NCCL_SOCKET_IFNAME=eth0"


def _answers():
    """Idle: first generation links below the switches. One card had an uncorrectable error and waits for a reset."""
    return {
        **gpus.model(MODEL, 46068, 8, (100, 350), 2520, 9001, "95.02.66.00.02", 4),
        "nvmlDeviceGetPerformanceState": 8,
        "nvmlDeviceGetCurrPcieLinkGeneration": 1,
        "nvmlDeviceGetClockInfo(1)": 210,
        "nvmlDeviceGetClockInfo(2)": 405,
        "nvmlDeviceGetMaxMigDeviceCount": 0,
        "nvmlDeviceGetRemappedRows GPU7": [0, 1, 1, 0],
        "field 230 GPU7": 4,
    }
