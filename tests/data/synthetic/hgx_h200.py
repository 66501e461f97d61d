"""A bare-metal HGX H200 node: two sockets, eight GPUs each with a ConnectX-7 under its own PCIe switch, four NVSwitches.

Tuned it is healthy, and every finding of medium severity or above on it would be a false alarm. Untuned it is what an
installation leaves behind, with a handful of faults. The bus numbers are those of such boards.
"""

import json
from types import SimpleNamespace

from tests.data.synthetic import gpus, plant, ubuntu
from tests.data.synthetic.build import Machine
from tests.data.synthetic.plant import DOWNSTREAM, ROOT_PORT, UPSTREAM, Host

KERNEL, DRIVER, GB = "6.8.0-85-generic", "580.178.04", 1 << 20
BUSES = (0x15, 0x3D, 0x4C, 0x5B, 0x97, 0xBD, 0xCB, 0xD9)
"""Of each root port; its switch follows, the NIC three and the GPU six buses on."""
GPUS = tuple(f"0000:{bus + 6:02x}:00.0" for bus in BUSES)
XEON = (
    "vendor_id : GenuineIntel\nmodel name : Intel(R) Xeon(R) Platinum 8480C\nmicrocode : 0x2b000639\nflags : fpu vme de"
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
    "i10nm_edac",
)

SYSCTLS = {
    "kernel.numa_balancing": "0",
    "kernel.nmi_watchdog": "0",
    "kernel.perf_event_paranoid": "2",
    "kernel.core_pattern": "|/bin/false",
    "net.core.rmem_max": "268435456",
    "net.core.wmem_max": "268435456",
    "net.core.netdev_max_backlog": "250000",
    "net.ipv4.tcp_rmem": "4096 131072 268435456",
    "net.ipv4.tcp_wmem": "4096 16384 268435456",
    "net.ipv4.tcp_mtu_probing": "1",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_notsent_lowat": "131072",
    "net.ipv4.neigh.default.gc_thresh1": "4096",
    "net.ipv4.neigh.default.gc_thresh2": "8192",
    "net.ipv4.neigh.default.gc_thresh3": "16384",
    "vm.dirty_background_bytes": "2147483648",
    "vm.dirty_bytes": "8589934592",
    "vm.dirty_background_ratio": "0",
    "vm.dirty_ratio": "0",
    "vm.max_map_count": "1048576",
    "vm.min_free_kbytes": "1032000",
    "vm.swappiness": "10",
}
PIDS = {
    "slurmd": 3021,
    "containerd": 2711,
    "dockerd": 2800,
    "sshd": 2455,
    "nvidia-persistenced": 2099,
    "nv-hostengine": 2300,
}
SLURM_TUNED = """PropagateResourceLimitsExcept=MEMLOCK
TaskPlugin=task/affinity,task/cgroup
ProctrackType=proctrack/cgroup
Prolog=/etc/slurm/prolog.sh
PrologFlags=Alloc,Contain
PrologEpilogTimeout=300
SchedulerParameters=nohold_on_prolog_fail
HealthCheckProgram=/usr/sbin/nhc
HealthCheckInterval=300
SelectType=select/cons_tres
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageTRES=gres/gpu"""
SLURM_PLAIN = "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity\nProlog=/etc/slurm/prolog.sh"


def machine(name):
    tuned = not name.endswith("untuned")
    host = Host({"/sys/class/dmi/id/sys_vendor": "Supermicro", "/sys/class/dmi/id/product_name": "SYS-821GE-TNHR"})
    states = {"POLL": (0, 0), "C1": (1, 0), "C1E": (2, 0), "C6": (290, int(tuned))}
    pace = "performance" if tuned else "powersave"
    frequency = {
        "scaling_driver": "intel_pstate",
        "scaling_governor": pace,
        "energy_performance_preference": "performance" if tuned else "balance_performance",
    }
    host.cpus(2, 56, 2, XEON, states, frequency, {0: 1056590000, 1: 1056918000})
    host.put("/sys/devices/system/cpu/intel_pstate", no_turbo=0, min_perf_pct=100 if tuned else 21, max_perf_pct=100)
    for socket in range(2):
        limits = {"constraint_0_power_limit_uw": 350000000, "constraint_0_max_power_uw": 350000000}
        zone = {"name": f"package-{socket}", "enabled": 1, "constraint_0_name": "long_term", **limits}
        host.put(f"/sys/class/powercap/intel-rapl:{socket}", **zone)
    links = _network(host, tuned)
    _rest_of_the_bus(host, tuned)
    _storage(host, tuned)
    arguments = "root=/dev/md0 ro intel_iommu=on iommu=pt init_on_alloc=0" if tuned else "root=/dev/md0 ro quiet splash"
    swap = 0 if tuned else 32 * GB
    ubuntu.base(host, KERNEL, arguments, 2113508000, swap, SYSCTLS if tuned else None, links, MODULES, DRIVER)
    host.files["/proc/net/route"] = _routes()
    _memory_errors(host)
    _software(host, name, tuned)
    return Machine(
        note=_note(tuned),
        host=host,
        kernel=KERNEL,
        units=_units(tuned),
        running=ubuntu.RUNNING
        + (("slurmd", "nvidia-fabricmanager", "nvidia-dcgm") if tuned else ("apport", "ModemManager", "slurmd")),
        commands=_commands(tuned),
        space={"/": (900, 31), "/scratch": (15300, 12), "/home": (500000, 61), "/dev/shm": (1082, 1)},
        ethtool=_ethtool(tuned),
        dcb={"ens6f0np0": {"pfc": [3], "dscp_priority": {"26": 3}}},
        health={} if tuned else {"nvme4": {"media_errors": 7, "used": 41}},
        gpus=gpus.replay(GPUS, "2335", DRIVER, _working_gpus() if tuned else _faulty_gpus()),
        synchronized=tuned,
    )


def _note(tuned):
    state = (
        "well tuned and healthy" if tuned else "as Ubuntu and the driver packages leave it, with some faults planted"
    )
    return f"no such machine was read; the description of a bare-metal 8x H200 HGX node, {state}, seen by the real collectors"


def _working_gpus():
    """A training job on all of them: at the power limit, warm, clocks a little apart; one row was remapped long ago."""
    answers = {
        "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
        "nvmlDeviceGetPowerUsage": 697000,
        "nvmlDeviceGetMarginTemperature": 19,
        "nvmlDeviceGetTemperature(0)": 66,
        "field 82": 78,
        "nvmlDeviceGetRemappedRows GPU6": [1, 0, 0, 0],
        "nvmlDeviceGetRowRemapperHistogram GPU6": {"max": 3071, "high": 1, "partial": 0, "low": 0, "none": 0},
        "nvmlDeviceGetTotalEccErrors(0,1) GPU6": 12,
    }
    for index in range(8):
        answers[f"nvmlDeviceGetClockInfo(1) GPU{index}"] = 1725 + 15 * (index % 4)
        answers[f"nvmlDeviceGetComputeRunningProcesses GPU{index}"] = [
            SimpleNamespace(pid=40001 + index, usedGpuMemory=120 << 30)
        ]
    return answers


def _faulty_gpus():
    """Persistence mode off, one GPU that waits for a reset to remap a row, one with a link down, one held down by heat."""
    return {
        "nvmlDeviceGetPersistenceMode": 0,
        "nvmlDeviceGetRemappedRows GPU3": [0, 1, 1, 0],
        "field 230 GPU3": 1,
        "nvmlDeviceGetNvLinkState(11) GPU5": 0,
        "nvmlDeviceGetCurrentClocksEventReasons GPU6": 0x40,
    }


def _network(host, tuned):
    """Eight rails of InfiniBand, one 200 Gb/s Ethernet card for storage, one 10 Gb/s port for management."""
    domain = "identity" if tuned else "DMA-FQ"
    for rail, bus in enumerate(BUSES):
        node = rail // 4
        switch = _switch(host, bus, node, tuned)
        port, nic, lower = f"0000:{bus + 2:02x}:00.0", f"0000:{bus + 3:02x}:00.0", [f"0000:{bus + 2:02x}:01.0"]
        slow = not tuned and rail == 2
        folder = host.pci(nic, [*switch, port], "0207 15b3 1021", node, "mlx5_core", (16, 16) if slow else (32, 16), (32, 16),
                          group=(2 * rail, domain), mrrs=4096 if tuned else 512)  # fmt: skip
        host.rdma(
            f"mlx5_{rail}", folder, "200 Gb/sec (2X NDR)" if slow else "400 Gb/sec (4X NDR)", link_downed=60 * slow
        )
        name = f"ibp{bus + 3}s0"
        host.net(name, folder, 400000, 4092, up=False, kind=32, mode="datagram")
        local = host.local[node] if tuned else host.local[0]
        host.irqs(folder, [f"mlx5_comp{number}@pci:{nic}" for number in range(63)], local)
        gpu = host.pci(GPUS[rail], [*switch, *lower], "0302 10de 2335", node, "nvidia", group=(2 * rail + 1, domain))
        host.put(gpu, resource="0x0000210000000000 0x0000213fffffffff 0x14220c\n" + "0x0 0x0 0x0\n" * 5)
        host.irqs(gpu, ["nvidia"] * 6, host.local[node])
    gpus.proc(host, GPUS, "NVIDIA H200")
    _ethernet(host, domain)
    host.net("docker0", None, 0, 1500, up=False)
    host.net("lo", None, 0, 65536, kind=772)
    return ["ens6f0np0", "eno1"]


def _ethernet(host, domain):
    """The storage card, whose second port has no cable, the two ports on the board, and the BMC's own over USB."""
    storage = host.pci("0000:2a:00.0", ["0000:29:01.0"], "0200 15b3 1021", 0, "mlx5_core", (32, 16), group=(40, domain))
    host.pci("0000:29:01.0", [], "0604 8086 352a", 0, "pcieport", port=ROOT_PORT)
    host.net("ens6f0np0", storage, 200000, 9000)
    host.rdma("mlx5_8", storage, "200 Gb/sec (4X HDR)", "Ethernet", "ens6f0np0", firmware="28.43.8002")
    host.put(storage + "/infiniband/mlx5_8", board_id="MT_0000000834")
    host.put(storage + "/infiniband/mlx5_8/tc/1", traffic_class="Global tclass=106")
    host.irqs(storage, [f"mlx5_comp{number}@pci:0000:2a:00.0" for number in range(63)], host.local[0])
    second = host.pci("0000:2a:00.1", ["0000:29:01.0"], "0200 15b3 1021", 0, "mlx5_core", (32, 16), group=(42, domain))
    host.net("ens6f1np1", second, 200000, 1500, up=False)
    host.rdma("mlx5_9", second, "40 Gb/sec (4X QDR)", "Ethernet", "ens6f1np1", state="1: DOWN")
    host.put(second + "/infiniband/mlx5_9", board_id="MT_0000000834")
    manager = host.pci("0000:02:00.0", ["0000:00:0c.0"], "0200 8086 1563", 0, "ixgbe", (8, 4), group=(41, domain))
    host.pci("0000:00:0c.0", [], "0604 8086 1bb8", 0, "pcieport", (8, 4), (16, 4), port=ROOT_PORT)
    host.net("eno1", manager, 10000, 1500)
    host.irqs(manager, [f"eno1-TxRx-{number}" for number in range(32)], host.local[0])
    host.net(
        "eno2",
        host.pci("0000:02:00.1", ["0000:00:0c.0"], "0200 8086 1563", 0, "ixgbe", (8, 4), group=(43, domain)),
        10000,
        1500,
        up=False,
    )
    host.net(
        "enx0a5b", "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-11/1-11.3/1-11.3:2.0", 425, 1500
    )  # the BMC's, over USB


def _switch(host, bus, node, tuned):
    """A root port with a PCIe switch of two ports below it. Returns the addresses down to the upstream port."""
    root, upper = f"0000:{bus:02x}:01.0", f"0000:{bus + 1:02x}:00.0"
    host.pci(root, [], "0604 8086 352a", node, "pcieport", port=ROOT_PORT)
    host.pci(upper, [root], "0604 1000 c030", node, "pcieport", port=UPSTREAM)
    for number in range(2):
        lower = f"0000:{bus + 2:02x}:{number:02x}.0"
        host.pci(lower, [root, upper], "0604 1000 c030", node, "pcieport", port=DOWNSTREAM, acs=0 if tuned else 0x1D)
    return [root, upper]


def _rest_of_the_bus(host, tuned):
    """The NVSwitches, each behind a port of a switch of their own."""
    for number in range(4):
        root, bdf = f"0000:05:{number + 1:02x}.0", f"0000:{7 + number:02x}:00.0"
        host.pci(root, [], "0604 8086 352a", 0, "pcieport", (5, 2), (32, 2), port=ROOT_PORT)
        host.pci(
            bdf,
            [root],
            "0680 10de 22a3",
            0,
            "nvidia-nvswitch",
            (5, 2),
            (5, 2),
            group=(50 + number, "identity" if tuned else "DMA-FQ"),
        )


def _storage(host, tuned):
    """Two small drives as a mirror for the system, four large ones striped as /scratch."""
    for number in range(6):
        node, system = int(number > 3), number < 2
        root, bdf = f"0000:{0xA0 + 2 * number:02x}:01.0", f"0000:{0xA1 + 2 * number:02x}:00.0"
        host.pci(root, [], "0604 8086 352a", node, "pcieport", (16, 4), (32, 4), port=ROOT_PORT)
        folder = host.pci(
            bdf, [root], "0108 144d a80a", node, "nvme", (16, 4), group=(60 + number, "identity" if tuned else "DMA-FQ")
        )
        chosen = "[none] mq-deadline" if tuned or number != 5 else "none [mq-deadline]"
        host.disk(
            f"nvme{number}n1", folder, 960 if system else 3840, "SAMSUNG MZQL23T8HCLS", chosen, number=f"259:{number}"
        )
        host.irqs(folder, [f"nvme{number}q{queue}" for queue in range(57)], host.local[node])
    for number, level in enumerate(("raid1", "raid0")):
        place = f"/sys/devices/virtual/block/md{number}"
        host.block(f"md{number}", place, f"9:{number}", 15360 if number else 960, read_ahead=4096 if tuned else 128)
        more = {} if number else {"degraded": int(not tuned), "sync_action": "idle"}
        host.put(place + "/md", level=level, array_state="clean", **more)
    host.put("/sys/fs/ext4/md0", errors_count=0)
    ubuntu.mountinfo(host, {
        "/": "9:0 ext4 /dev/md0 relatime",
        "/scratch": "9:1 xfs /dev/md1 " + ("noatime" if tuned else "relatime"),
        "/home": "0:60 nfs4 192.0.2.10:/home relatime",
        "/lustre": "0:70 lustre 192.0.2.20@o2ib:/lustre flock",
        "/snap/core22/1": "7:0 squashfs /dev/loop0 ro",
        "/dev/shm": "0:25 tmpfs tmpfs nosuid,nodev",
    })  # fmt: skip
    more = ",nconnect=8" if tuned else ""
    options = "rw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp" + more
    host.files["/proc/self/mountinfo"] = host.files["/proc/self/mountinfo"].replace(
        "192.0.2.10:/home rw", "192.0.2.10:/home " + options
    )
    host.put("/sys/class/bdi/0:60", read_ahead_kb=15360 if tuned else 128)
    _lustre(host, tuned)
    host.files["/proc/sys/sunrpc/tcp_max_slot_table_entries"] = "65536"


def _lustre(host, tuned):
    instance = "ffff9f0e6533a000"
    for number in range(4):
        folder = f"/sys/fs/lustre/osc/lustre-OST{number:04x}-osc-{instance}"
        host.put(folder, max_rpcs_in_flight=32 if tuned else 8, max_pages_per_rpc=1024, max_dirty_mb=2000, checksums=1)
    host.put(
        f"/sys/fs/lustre/llite/lustre-{instance}",
        max_read_ahead_mb=256 if tuned else 64,
        max_read_ahead_per_file_mb=64,
        statahead_max=32,
    )


def _routes():
    """A default route and the subnets of the two Ethernet links, in the kernel's byte order."""
    head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"
    rows = ("eno1 00000000 010200C0 0003 0 0 100 00000000", "eno1 000200C0 00000000 0001 0 0 100 00FFFFFF",
            "ens6f0np0 006433C6 00000000 0001 0 0 100 00FFFFFF")  # fmt: skip
    return "\n".join([head, *(row + " 0 0 0" for row in rows)])


def _memory_errors(host):
    """Thirty-two modules of 64 GiB."""
    for controller in range(8):
        folder = f"/sys/devices/system/edac/mc/mc{controller}"
        host.put(folder, seconds_since_reset=1900700, ue_noinfo_count=0, ce_noinfo_count=0)
        for module in range(4):
            label = f"CPU_SrcID#{controller // 4}_MC#{controller % 4}_Chan#{module // 2}_DIMM#{module % 2}"
            host.put(f"{folder}/dimm{module}", dimm_ue_count=0, dimm_ce_count=0, dimm_label=label)
    host.put("/sys/kernel/mm/hugepages/hugepages-2048kB", nr_hugepages=0, free_hugepages=0, resv_hugepages=0)


def _software(host, name, tuned):
    limits, engine = (ubuntu.RAISED, ubuntu.ENGINE_RAISED) if tuned else (ubuntu.LIMITS, ubuntu.ENGINE)
    flag = "" if tuned else "--no-persistence-mode "
    daemon = f"/usr/bin/nvidia-persistenced --user nvidia-persistenced {flag}--verbose"
    host.process(PIDS["slurmd"], "/usr/sbin/slurmd -D -s", limits)
    host.process(PIDS["containerd"], "/usr/bin/containerd", engine)
    host.process(PIDS["dockerd"], "/usr/bin/dockerd -H fd://", engine)
    host.process(PIDS["sshd"], "/usr/sbin/sshd -D", ubuntu.LIMITS)
    host.process(PIDS["nvidia-persistenced"], daemon, status="Cpus_allowed_list:\t0-223\nMems_allowed_list:\t0-1")
    host.put("/run/nvidia-persistenced", **{"nvidia-persistenced.pid": PIDS["nvidia-persistenced"]})
    if tuned:
        host.process(PIDS["nv-hostengine"], "/usr/bin/nv-hostengine -n --service-account nvidia-dcgm")
    host.pids = PIDS
    for rank in range(8 * tuned):
        host.process(40001 + rank, "/opt/train/bin/python train.py", ubuntu.RAISED)
    for tool in ("slurmd", "scontrol", "nv-fabricmanager", "modinfo", "ipmitool", "containerd", "dockerd"):
        host.files["/usr/bin/" + tool] = ""
    host.files["/dev/ipmi0"] = ""
    _slurm(host, name, tuned)
    _containers(host, tuned)
    _settings(host, tuned)


def _slurm(host, name, tuned):
    gres = "gpu:h200:8" if tuned else "gpu:h200:7"
    node = f"NodeName={name} CPUs=224 Sockets=2 CoresPerSocket=56 ThreadsPerCore=2 RealMemory=2000000 Gres={gres}"
    node += " CoreSpecCount=2" * tuned
    host.put("/etc/slurm", **{
        "slurm.conf": f"ClusterName=example\nGresTypes=gpu\n{SLURM_TUNED if tuned else SLURM_PLAIN}\n{node}",
        "gres.conf": "AutoDetect=nvml" if tuned else "Name=gpu Type=h200 File=/dev/nvidia[0-6]",
        "cgroup.conf": "ConstrainCores=yes\nConstrainRAMSpace=yes" + "\nConstrainDevices=yes" * tuned,
    })  # fmt: skip
    host.put("/usr/lib/x86_64-linux-gnu/slurm-wlm", **{"gpu_generic.so": "", "gpu_nvml.so": ""})


def _containers(host, tuned):
    host.put(
        "/etc/containerd",
        **{"config.toml": '[plugins."x".containerd.runtimes.nvidia]\nenable_cdi = true\nSystemdCgroup = true'},
    )
    host.put("/usr/bin", **{"nvidia-container-runtime": "", "nvidia-ctk": ""})
    runtime = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}
    generous = {"default-shm-size": "64g", "default-ulimits": {"memlock": {"Name": "memlock", "Soft": -1, "Hard": -1}}}
    host.put("/etc/docker", **{"daemon.json": json.dumps({**runtime, **(generous if tuned else {})})})
    host.put("/etc/cdi", **{"nvidia.yaml": f'kind: "nvidia.com/gpu"\npath: /usr/lib/libcuda.so.{DRIVER}'})
    host.put("/dev/char", **{"195:0": ""})


def _settings(host, tuned):
    """Files that an administrator has written, or has not; and what the driver wrote to the kernel log."""
    job, memory = (
        "31, pid=4711, name=python, Ch 00000008, MMU Fault",
        "48, pid=4711, name=python, An uncorrectable double bit error",
    )
    host.files["/dev/kmsg"] += f"\n4,9001,99000123456,-;NVRM: Xid (PCI:{GPUS[3][:-2]}): {job if tuned else memory}"
    conf = "NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7\nNCCL_SOCKET_IFNAME==eno1"
    host.files["/etc/nccl.conf"] = (
        conf if tuned else 'NCCL_DEBUG=INFO\nNCCL_BUFFSIZE=4M\nNCCL_IB_HCA="mlx5"\nNCCL_COLLECTIVE_ENABLE=1'
    )
    if tuned:
        host.files["/etc/security/limits.conf"] = "* - memlock unlimited\n* - nofile 1048576"
        host.files["/etc/systemd/logind.conf"] = "[Login]\nRemoveIPC=no"
        host.files["/etc/systemd/system.conf"] = "[Manager]\nDefaultLimitMEMLOCK=infinity"
        host.put(
            "/etc/apt/apt.conf.d", **{"52nvidia": 'Unattended-Upgrade::Package-Blacklist { "nvidia-"; "libnvidia-"; };'}
        )
        host.files["/etc/tmpfiles.d/gpu.conf"] = "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise"
    status = [
        f"Package: {package}\nStatus: install ok installed"
        for package in ("nvidia-driver-580-server-open", "libnvidia-compute-580-server")
    ]
    host.files["/var/lib/dpkg/status"] = "\n\n".join(status)


def _units(tuned):
    flag = "" if tuned else "--no-persistence-mode "
    ours = {
        "containerd": "/usr/bin/containerd",
        "docker": "/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock",
        "slurmd": "/usr/sbin/slurmd -D -s",
        "nvidia-fabricmanager": "/usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg",
        "nvidia-persistenced": f"/usr/bin/nvidia-persistenced --user nvidia-persistenced {flag}--verbose",
    }
    more = (
        {"nvidia-dcgm": "/usr/bin/nv-hostengine -n", "chrony": "/usr/sbin/chronyd -F 1", "systemd-timesyncd": None}
        if tuned
        else {}
    )
    return {**ubuntu.UNITS, **ours, **more}


def _commands(tuned):
    memlock = "infinity" if tuned else "8388608"
    return {
        "systemctl show --property=DefaultLimit": f"DefaultLimitMEMLOCK={memlock}\nDefaultLimitMEMLOCKSoft={memlock}",
        "loginctl show-session": f"RemoveIPC={'no' if tuned else 'yes'}",
        "nv-fabricmanager --version": f"Fabric Manager version is : {DRIVER if tuned else '580.95.05'}",
        "scontrol -o show node": f"Gres=gpu:h200:{8 if tuned else 7} State=MIXED CfgTRES=cpu=224",
        "modinfo nvidia": f"version:        {DRIVER}",
        "modinfo": "srcversion:     0000000000000000",
        "ipmitool chassis status": "\n".join(f"{fault:<21}: false" for fault in plant.CHASSIS),
        "ipmitool sdr type Fan": "FAN1 | 41h | ok | 29.1 | 8400 RPM",
        "ipmitool sdr type Temperature": "Inlet Temp | 05h | ok | 7.1 | 24 degrees C",
        "ipmitool sdr type Power Supply": "PS1 Status | C8h | ok | 10.1 | Presence detected",
        "ipmitool sel info": f"Entries          : 41\nPercent Used     : {12 if tuned else 96}%\nOverflow         : false",
    }


def _ethtool(tuned):
    queues = {"rx_max": 0, "tx_max": 0, "combined_max": 112, "rx": 0, "tx": 0, "combined": 63}
    storage = {
        "driver_info": {
            "driver": "mlx5_core",
            "version": KERNEL,
            "firmware": "28.43.8002 (MT_0000000834)",
            "bus": "0000:2a:00.0",
        },
        "coalescing": {
            "rx_usecs": 8,
            "rx_frames": 128,
            "tx_usecs": 8,
            "tx_frames": 128,
            "adaptive_rx": True,
            "adaptive_tx": True,
        },
        "rings": {"rx_max": 8192, "tx_max": 8192, "rx": 8192 if tuned else 1024, "tx": 8192 if tuned else 1024},
        "pause": {"autoneg": False, "rx": not tuned, "tx": not tuned},
        "channels": queues,
        "counters": {"rx_packets_phy": 10**12, "rx_discards_phy": 0, "tx_pause_storm_error_events": 0},
    }
    office = {"rings": {"rx_max": 4096, "tx_max": 4096, "rx": 4096 if tuned else 512, "tx": 4096 if tuned else 512},
              "channels": {**queues, "combined_max": 63, "combined": 32}}  # fmt: skip
    return {
        "ens6f0np0": storage,
        "eno1": {
            **storage,
            **office,
            "driver_info": {**storage["driver_info"], "driver": "ixgbe", "bus": "0000:02:00.0"},
        },
    }
