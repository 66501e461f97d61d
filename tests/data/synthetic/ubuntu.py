"""What Ubuntu 22.04 and NVIDIA's packages put on a machine, before anybody tunes it."""

# ruff: noqa: PLR0913, PLR0917  (a device has many attributes, and a description reads best in one line)

import struct

SYSCTLS = {
    "fs.file-max": "9223372036854775807",
    "fs.inotify.max_user_instances": "128",
    "fs.nr_open": "1048576",
    "kernel.core_pattern": "|/usr/share/apport/apport -p%p -s%s -c%c -d%d -P%P -u%u -g%g -- %E",
    "kernel.nmi_watchdog": "1",
    "kernel.numa_balancing": "1",
    "kernel.perf_event_paranoid": "4",
    "kernel.pid_max": "4194304",
    "kernel.random.boot_id": "00000000-0000-0000-0000-000000000000",
    "kernel.threads-max": "16510816",
    "net.ipv4.ip_forward": "0",
    "net.core.busy_poll": "0",
    "net.core.busy_read": "0",
    "net.core.netdev_max_backlog": "1000",
    "net.core.rmem_max": "212992",
    "net.core.somaxconn": "4096",
    "net.core.wmem_max": "212992",
    "net.ipv4.ip_local_port_range": "32768\t60999",
    "net.ipv4.neigh.default.gc_thresh1": "128",
    "net.ipv4.neigh.default.gc_thresh2": "512",
    "net.ipv4.neigh.default.gc_thresh3": "1024",
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_mem": "24766224\t33021632\t49532448",
    "net.ipv4.tcp_mtu_probing": "0",
    "net.ipv4.tcp_notsent_lowat": "4294967295",
    "net.ipv4.tcp_rmem": "4096\t131072\t6291456",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_wmem": "4096\t16384\t4194304",
    "vm.compaction_proactiveness": "20",
    "vm.dirty_background_bytes": "0",
    "vm.dirty_background_ratio": "10",
    "vm.dirty_bytes": "0",
    "vm.dirty_ratio": "20",
    "vm.max_map_count": "65530",
    "vm.min_free_kbytes": "90112",
    "vm.overcommit_memory": "0",
    "vm.swappiness": "60",
    "vm.zone_reclaim_mode": "0",
}
LINK_CONF = {"rp_filter": "2", "arp_ignore": "0", "arp_announce": "0"}

LIMITS = {
    "Max locked memory": "8388608 8388608 bytes",
    "Max open files": "1024 524288 files",
    "Max stack size": "8388608 unlimited bytes",
    "Max processes": "8254000 8254000 processes",
    "Max realtime priority": "0 0",
    "Max core file size": "0 unlimited bytes",
}
"""What a service has that sets no limit itself (and sshd passes on to logins)."""
RAISED = {
    **LIMITS,
    "Max locked memory": "unlimited unlimited bytes",
    "Max open files": "1048576 1048576 files",
    "Max stack size": "8388608 unlimited bytes",
}
ENGINE = {**LIMITS, "Max open files": "1048576 1048576 files", "Max core file size": "unlimited unlimited bytes"}
ENGINE_RAISED = {**ENGINE, "Max locked memory": "unlimited unlimited bytes"}
"""What the units of containerd and Docker raise, and what they do not."""

VULNERABILITIES = {
    "spec_rstack_overflow": "Not affected",
    "meltdown": "Not affected",
    "retbleed": "Not affected",
    "spectre_v1": "Mitigation: usercopy/swapgs barriers and __user pointer sanitization",
    "spectre_v2": "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; RSB filling; PBRSB-eIBRS: SW sequence",
}

FILES = {
    "/etc/os-release": 'PRETTY_NAME="Ubuntu 22.04.5 LTS"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"',
    "/proc/1/comm": "systemd",
    "/proc/uptime": "1900800.00 400000000.00",
    "/proc/self/status": "CapBnd:\t000001ffffffffff",
    "/run/systemd/system": None,
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "/sys/kernel/mm/ksm/run": "0",
    "/sys/kernel/mm/ksm/pages_sharing": "0",
    "/sys/module/pcie_aspm/parameters/policy": "[default] performance powersave powersupersave",
    "/sys/module/nvme_core/parameters/io_timeout": "30",
    "/dev/cpu_dma_latency": b"\x00\x94\x35\x77",
    "/etc/default/irqbalance": '#IRQBALANCE_ARGS=\nOPTIONS=""',
    "/etc/systemd/system.conf": "[Manager]\n#DefaultLimitMEMLOCK=",
    "/etc/systemd/logind.conf": "[Login]\n#RemoveIPC=yes",
    "/etc/pam.d/sshd": "session    required     pam_limits.so",
    "/etc/security/limits.conf": "# nothing is set",
    "/etc/sysctl.d/10-network-security.conf": "net.ipv4.conf.default.rp_filter=2\nnet.ipv4.conf.all.rp_filter=2",
    "/etc/modprobe.d/blacklist-nouveau.conf": "blacklist nouveau\noptions nouveau modeset=0",
    "/proc/driver/nvidia/params": "RmProfilingAdminOnly: 1",
    "/etc/ufw/ufw.conf": "ENABLED=no",
    "/etc/default/ufw": 'DEFAULT_INPUT_POLICY="DROP"',
    "/usr/bin/unattended-upgrade": "#!/usr/bin/python3",
    "/etc/apt/apt.conf.d/20auto-upgrades": 'APT::Periodic::Unattended-Upgrade "1";',
    "/proc/net/snmp": "Tcp: PassiveOpens OutSegs RetransSegs\nTcp: 40213 91230417733 60218",
    "/proc/net/netstat": "TcpExt: ListenOverflows ListenDrops TCPMemoryPressures\nTcpExt: 0 0 0",
    "/proc/net/sockstat": "TCP: inuse 40 orphan 0 tw 2 alloc 60 mem 120",
    "/proc/net/softnet_stat": "0000ffff 00000000 00000002",
    "/proc/net/stat/arp_cache": "entries  table_fulls\n00000029  00000000",
    "/usr/bin/systemctl": "",
    "/usr/bin/loginctl": "",
}

LIBRARY = struct.pack("<4sBB10x16xQ14xHH6xI4xQ16xQ16x", b"\x7fELF", 2, 1, 64, 56, 1, 1, 0, 120)
"""The head of a library: an ELF header and one loaded segment that ends where the file does."""

UNITS = {
    "irqbalance": "/usr/sbin/irqbalance --foreground",
    "nvidia-persistenced": "/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose",
    "systemd-timesyncd": "/lib/systemd/systemd-timesyncd",
    "apt-daily-upgrade.timer": "",
}
"""Active units and their command lines."""
RUNNING = ("cron", "dbus", "irqbalance", "multipathd", "nvidia-persistenced", "rsyslog", "snapd", "ssh", "systemd-journald",
           "systemd-logind", "systemd-networkd", "systemd-timesyncd", "systemd-udevd", "udisks2", "unattended-upgrades")  # fmt: skip


def base(
    host,
    kernel,
    cmdline,
    memory_kb,
    swap_kb=0,
    sysctls=None,
    links=(),
    modules=(),
    driver="",
    page_kb=4,
    clock="tsc",
    arch="x86_64",
):
    """The files that depend on the machine. `sysctls` are kept in a file of their own, as an administrator would."""
    host.files.update({path: content for path, content in FILES.items() if path not in host.files})
    for name, setting in {**SYSCTLS, **(sysctls or {})}.items():
        host.files["/proc/sys/" + name.replace(".", "/")] = setting
    if sysctls:
        host.files["/etc/sysctl.d/60-gpu-node.conf"] = "\n".join(f"{name} = {each}" for name, each in sysctls.items())
    for link in ("all", *links):
        host.put(f"/proc/sys/net/ipv4/conf/{link}", **LINK_CONF)
    host.put("/sys/devices/system/cpu/vulnerabilities", **VULNERABILITIES)
    clocks = "/sys/devices/system/clocksource/clocksource0"
    host.put(
        clocks, current_clocksource=clock, available_clocksource=f"{clock} hpet acpi_pm" if clock == "tsc" else clock
    )
    sizes = {"MemTotal": memory_kb, "MemFree": memory_kb * 9 // 10, "MemAvailable": memory_kb * 9 // 10 + 4000000}
    swap = {"SwapTotal": swap_kb, "SwapFree": swap_kb}
    host.files["/proc/meminfo"] = "\n".join(f"{name}: {amount} kB" for name, amount in {**sizes, **swap}.items())
    row = f"\n/swap.img file {swap_kb} 0 -2" if swap_kb else ""
    host.files["/proc/swaps"] = "Filename Type Size Used Priority" + row
    host.put("/sys/kernel/mm/transparent_hugepage", hpage_pmd_size=page_kb * 1024 * page_kb * 128)
    host.files["/proc/cmdline"] = f"BOOT_IMAGE=/boot/vmlinuz-{kernel} {cmdline}"
    entry = f"menuentry 'Ubuntu' --id gnulinux-simple {{\n linux /boot/vmlinuz-{kernel} {cmdline}\n}}"
    host.files["/boot/grub/grub.cfg"] = f'set default="0"\n{entry}'
    host.files[f"/boot/vmlinuz-{kernel}"] = ""
    host.files[f"/boot/config-{kernel}"] = "# Linux\nCONFIG_INIT_ON_ALLOC_DEFAULT_ON=y"
    host.files["/proc/version_signature"] = f"Ubuntu {kernel} 6.8.12"
    host.files[f"/lib/modules/{kernel}/modules.dep"] = (
        "updates/dkms/nvidia.ko.zst:\nkernel/drivers/gpu/drm/nouveau/nouveau.ko.zst:\n"
        "updates/dkms/nvidia-peermem.ko.zst: kernel/drivers/infiniband/core/ib_core.ko.zst updates/dkms/nvidia.ko.zst"
    )
    if "nvidia_uvm" in modules:
        host.files |= {"/dev/nvidia-uvm": "", "/dev/nvidia-uvm-tools": ""}
    host.files["/proc/modules"] = "\n".join(f"{name} 1000 0 - Live 0x0" for name in modules)
    host.memory_modules(16, memory_kb)
    _driver(host, driver, arch)


def _driver(host, version, arch):
    folder = f"/usr/lib/{arch}-linux-gnu"
    for name in ("libnvidia-ml.so", "libcuda.so", "libnvidia-ptxjitcompiler.so"):
        host.files[f"{folder}/{name}.{version}"] = LIBRARY
        host.files[f"{folder}/{name}.1"] = f"-> {folder}/{name}.{version}"
    host.files["/sys/module/nvidia/version"] = version
    host.files["/proc/driver/nvidia/version"] = f"NVRM version: NVIDIA UNIX Open Kernel Module for {arch}  {version}"
    host.files["/dev/kmsg"] = f"6,0,1502638,-;NVRM: loading NVIDIA UNIX Open Kernel Module for {arch}  {version}"


def mountinfo(host, mounts):
    """`mounts`: place → "device-number type source options"."""
    lines = []
    for place, told in mounts.items():
        number, kind, source, options = told.split()
        lines.append(f"30 1 {number} / {place} rw,{options} - {kind} {source} rw")
    host.files["/proc/self/mountinfo"] = "\n".join(lines)
    host.files["/proc/self/mounts"] = "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0"
    for place in mounts:
        host.files.setdefault(place if place != "/" else "/lost+found", None)
    host.files.setdefault("/dev/shm", None)
