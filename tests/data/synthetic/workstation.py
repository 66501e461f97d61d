"""A desktop with four RTX 4090, which make it a server: Threadripper PRO, no cluster, nobody tuned it. The GPUs idle, one drives a screen."""

from types import SimpleNamespace

from tests.data.synthetic import gpus, ubuntu
from tests.data.synthetic.build import Machine
from tests.data.synthetic.plant import ROOT_PORT, Host

KERNEL, DRIVER, MODEL = "6.8.0-85-generic", "580.95.05", "NVIDIA GeForce RTX 4090"
GPUS = ("0000:01:00.0", "0000:21:00.0", "0000:41:00.0", "0000:61:00.0")
AMD = "vendor_id : AuthenticAMD\nmodel name : AMD Ryzen Threadripper PRO 7975WX 32-Cores\nmicrocode : 0xa108108\nflags : fpu vme de"
MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "ixgbe", "nvme")
ENGINES = {"driver_info": {"driver": "ixgbe", "version": KERNEL, "firmware": "0x800015e0", "bus": "0000:81:00.0"},
           "rings": {"rx_max": 4096, "tx_max": 4096, "rx": 512, "tx": 512},
           "coalescing": {"rx_usecs": 112, "rx_frames": 0, "tx_usecs": 510, "tx_frames": 0, "adaptive_rx": False, "adaptive_tx": False},
           "pause": {"autoneg": True, "rx": True, "tx": True},
           "channels": {"rx_max": 0, "tx_max": 0, "combined_max": 8, "rx": 0, "tx": 0, "combined": 8}}  # fmt: skip


def machine(_):
    host = Host({"/sys/class/dmi/id/sys_vendor": "ASUS", "/sys/class/dmi/id/product_name": "Pro WS WRX90E-SAGE SE"})
    frequency = {
        "scaling_driver": "amd-pstate-epp",
        "scaling_governor": "powersave",
        "energy_performance_preference": "balance_performance",
    }
    host.cpus(1, 32, 2, AMD, {"POLL": (0, 0), "C1": (1, 0), "C2": (18, 0), "C3": (350, 0)}, frequency, {0: 263520000})
    host.put("/sys/devices/system/cpu/cpufreq", boost=1)
    for index, bdf in enumerate(GPUS):
        root = f"0000:{index * 32:02x}:01.1"
        link = (2.5, 8 if index == 2 else 16)  # the third hangs on a bad riser
        host.pci(root, [], "0604 1022 14ab", 0, "pcieport", link, (32, 16), port=ROOT_PORT)
        folder = host.pci(bdf, [root], "0300 10de 2684", 0, "nvidia", link, (16, 16), group=(index, "DMA-FQ"), mrrs=512)
        host.put(
            folder,
            resource="0xb0000000 0xb0ffffff 0x40200\n0x20000000000 0x207ffffffff 0x14220c\n" + "0x0 0x0 0x0\n" * 4,
        )
        host.irqs(folder, ["nvidia"], host.local[0])
    gpus.proc(host, GPUS, MODEL)
    host.pci("0000:80:01.1", [], "0604 1022 14ab", 0, "pcieport", (8, 4), (32, 4), port=ROOT_PORT)
    wire = host.pci(
        "0000:81:00.0", ["0000:80:01.1"], "0200 8086 1563", 0, "ixgbe", (8, 4), group=(9, "DMA-FQ"), mrrs=512
    )
    host.net("enp129s0", wire, 1000, 1500)
    host.irqs(wire, [f"enp129s0-{number}" for number in range(8)], host.local[0])
    host.net("lo", None, 0, 65536, kind=772)
    host.pci("0000:80:03.1", [], "0604 1022 14ab", 0, "pcieport", (16, 4), (32, 4), port=ROOT_PORT)
    drive = host.pci(
        "0000:82:00.0", ["0000:80:03.1"], "0108 144d a80c", 0, "nvme", (16, 4), group=(10, "DMA-FQ"), mrrs=512
    )
    host.disk("nvme0n1", drive, 2000, "Samsung SSD 990 PRO 2TB", number="259:0")
    host.block("sda", "/sys/devices/pci0000:80/ata1/host0/block/sda", "8:0", 8000, "[mq-deadline] none", rotational=1)
    host.put("/sys/fs/ext4/nvme0n1", errors_count=0)
    host.put("/sys/fs/ext4/sda", errors_count=0)
    ubuntu.base(
        host, KERNEL, "root=/dev/nvme0n1p2 ro quiet splash", 263520000, 2097148, None, ["enp129s0"], MODULES, DRIVER
    )
    host.files["/proc/sys/kernel/numa_balancing"] = "0"  # as the kernel leaves it where there is one node
    ubuntu.mountinfo(
        host,
        {
            "/": "259:0 ext4 /dev/nvme0n1p2 relatime",
            "/data": "8:0 ext4 /dev/sda1 relatime",
            "/dev/shm": "0:25 tmpfs tmpfs nosuid,nodev",
        },
    )
    host.files["/proc/net/route"] = (
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU\nenp129s0 00000000 010200C0 0003 0 0 100 00000000 0\n"
        "enp129s0 000200C0 00000000 0001 0 0 100 00FFFFFF 0"
    )
    host.process(1500, "/usr/sbin/sshd -D", ubuntu.LIMITS)
    host.process(2001, "/usr/lib/xorg/Xorg vt2", ubuntu.LIMITS)
    host.files["/var/lib/dpkg/status"] = "Package: nvidia-driver-580-open\nStatus: install ok installed"
    return Machine(
        note="no such machine was read; the description of a workstation with four RTX 4090, as its owner installed it, seen by the real collectors",
        host=host,
        kernel=KERNEL,
        units={"irqbalance": "/usr/sbin/irqbalance --foreground", "power-profiles-daemon": "/usr/libexec/power-profiles-daemon",
               "systemd-timesyncd": "/lib/systemd/systemd-timesyncd", "apt-daily-upgrade.timer": ""},
        running=(*ubuntu.RUNNING, "gdm", "avahi-daemon", "cups", "cups-browsed", "ModemManager", "colord", "packagekit", "switcheroo-control"),
        commands={
            "systemctl show --property=DefaultLimit": "DefaultLimitMEMLOCK=8388608\nDefaultLimitMEMLOCKSoft=8388608",
            "loginctl show-session": "RemoveIPC=yes",
        },
        space={"/": (1900, 71), "/data": (7800, 88), "/dev/shm": (134, 1)},
        ethtool={"enp129s0": ENGINES},
        gpus=gpus.replay(GPUS, "2684", DRIVER, _answers(), gpus.GEFORCE, p2p=1),
    )  # fmt: skip


def _answers():
    """Idle cards: first generation links, low clocks. The first one shows a desktop."""
    return {
        **gpus.model(MODEL, 24564, 8, (150, 450, 600), 3105, 10501, "95.02.18.80.87", 4, bar1_mib=32768),
        "nvmlDeviceGetPersistenceMode": 0,
        "nvmlDeviceGetEccMode": [0, 0],
        "nvmlDeviceGetDefaultEccMode": [0],
        "nvmlDeviceGetPerformanceState": 8,
        "nvmlDeviceGetCurrPcieLinkGeneration": 1,
        "nvmlDeviceGetCurrPcieLinkWidth GPU2": 8,
        "nvmlDeviceGetClockInfo(1)": 210,
        "nvmlDeviceGetClockInfo(2)": 405,
        "nvmlDeviceGetPowerUsage": 21000,
        "nvmlDeviceGetNumFans": 2,
        "nvmlDeviceGetFanSpeed_v2(0)": 30,
        "nvmlDeviceGetFanSpeed_v2(1)": 30,
        "nvmlDeviceGetFanControlPolicy_v2(0)": 0,
        "nvmlDeviceGetFanControlPolicy_v2(1)": 0,
        "nvmlDeviceGetGraphicsRunningProcesses GPU0": [SimpleNamespace(pid=2001, usedGpuMemory=180 << 20)],
    }
