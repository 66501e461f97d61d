"""The fixes that no other machine proves: a server whose GPUs, memory, queues and maker are played, and then a cloud's.

The machine is booted with what its template lacks: an IOMMU, a card with four queues, idle states. A fault that could not be
planted fails its own tests alone: each says what the commands that planted it printed.
"""

import importlib.util
import json
from functools import partial
from types import SimpleNamespace
from unittest.mock import ANY

import pytest

from tests.machines import witness
from tests.machines.image import run
from tests.machines.test_apply import UNTUNED, Controller

THERE = "/root/played"
QUEUES = "52:54:00:30:00:fa"
"""The hardware address of the card with four queues."""

FABRIC = (UNTUNED / "root/etc/systemd/system/site-fabric.service").read_text()
DAEMON = "[Unit]\nDescription=played\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
ONCE = """[Unit]
Description=played
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh {script}
[Install]
WantedBy=multi-user.target
"""

POSES = """
umount /proc/meminfo /sys/class/dmi/id/product_name /sys/class/dmi/id/sys_vendor 2>/dev/null
cd /root/played
case $(cat pose) in
server)
    rm -f /var/lib/kubelet/config.yaml
    sed 's/^MemTotal:.*/MemTotal:       134217728 kB/' /proc/meminfo > meminfo
    echo played.metal > product_name
    mount --bind meminfo /proc/meminfo
    mount --bind product_name /sys/class/dmi/id/product_name ;;
cloud)
    mkdir -p /var/lib/kubelet
    printf 'apiVersion: kubelet.config.k8s.io/v1beta1\\nkind: KubeletConfiguration\\n' > /var/lib/kubelet/config.yaml
    echo 'Amazon EC2' > sys_vendor
    mount --bind sys_vendor /sys/class/dmi/id/sys_vendor ;;
esac
"""
"""A server of 128 GiB that is no virtual machine, or a virtual machine of Amazon's that is a node of Kubernetes."""

NFSD = """set -e
modprobe nfsd
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /srv/played /var/lib/nfs/v4recovery
echo '-3 +4 +4.1 +4.2' > /proc/fs/nfsd/versions
printf '%s\\n' 'nfsd 127.0.0.1 2147483647 played' > /proc/net/rpc/auth.unix.ip/channel
printf '%s\\n' 'played 1 \\x00000000 2147483647 /srv/played' > /proc/net/rpc/nfsd.fh/channel
printf '%s\\n' 'played /srv/played 2147483647 9234 65534 65534 0' > /proc/net/rpc/nfsd.export/channel
echo 2 > /proc/fs/nfsd/threads
"""
"""The kernel's own NFS server without the programs that usually fill its tables: 9234 is fsid, async, insecure, no_subtree_check."""

FILES = {
    f"{THERE}/poses.sh": POSES,
    f"{THERE}/pose": "server\n",
    f"{THERE}/nfsd.sh": NFSD,
    "/etc/systemd/system/played-poses.service": ONCE.format(script=f"{THERE}/poses.sh"),
    "/etc/systemd/system/played-nfsd.service": ONCE.format(script=f"{THERE}/nfsd.sh"),
    "/etc/systemd/system/site-fabric.service": FABRIC,
    "/usr/lib/systemd/system/nvidia-fabricmanager.service": DAEMON,
    "/usr/lib/systemd/system/crio.service": DAEMON,
    "/etc/crio/crio.conf": '[crio.runtime]\npids_limit = 1024\ndefault_ulimits = [\n  "memlock=65536:65536",\n]\n',
    "/etc/containers/containers.conf": '[containers]\ndefault_ulimits = ["nofile=1024:2048", "memlock=65536:65536"]\n',
    "/etc/cdi/nvidia.yaml": "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices: []\n",
    "/etc/docker/daemon.json": '{\n    "bridge": "none"\n}\n',
    "/etc/apt/apt.conf.d/20auto-upgrades": 'APT::Periodic::Unattended-Upgrade "1";\n',
    "/etc/systemd/network/10-management.network.d/site.conf": "[Link]\nMTUBytes=9000\n",
    "/etc/systemd/network/05-site-queues.link": f"[Match]\nMACAddress={QUEUES}\n[Link]\nNamePolicy=keep kernel database onboard slot path\nCombinedChannels=1\n",
    "/etc/systemd/network/20-site-queues.network": f"[Match]\nMACAddress={QUEUES}\n[Link]\nRequiredForOnline=no\n[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n",
    "/etc/tmpfiles.d/site.conf": "w /sys/module/pcie_aspm/parameters/policy - - - - powersave\n",
    "/etc/sysctl.d/99-site.conf": "vm.min_free_kbytes = 65536\nnet.ipv4.tcp_mtu_probing = 0\nsunrpc.tcp_max_slot_table_entries = 16\n",
    "/etc/modprobe.d/site-gpu.conf": "options nouveau ids=10de:2335\n",
    "/etc/modules-load.d/site-gpu.conf": "nouveau\n",
}
FSTAB = (
    "127.0.0.1:/ /nfs nfs4 noac,vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,soft,timeo=50,nofail,"
    "x-systemd.requires=played-nfsd.service 0 0"
)
SYNCHRONOUS = FSTAB.replace("/nfs nfs4 noac,", "/sets nfs4 sync,")
NOUVEAU = """
import os, pathlib, subprocess
folder = pathlib.Path("/lib/modules") / os.uname().release
content, magic = next(folder.rglob("pci-stub.ko")).read_bytes(), b"~Module signature appended~\\n"
if content.endswith(magic):
    content = content[: -len(magic) - 12 - int.from_bytes(content[-len(magic) - 4 : -len(magic)], "big")]
for name in (b"pci_stub\\0", b"pci-stub\\0"):
    assert name in content, name
    content = content.replace(name, b"nouveau\\0\\0")
(folder / "updates").mkdir(exist_ok=True)
(folder / "updates/nouveau.ko").write_bytes(content)
subprocess.run(["depmod"], check=True)
"""
"""The kernel's own pci-stub under the name nouveau: it takes GPUs that have no memory to map."""

B200 = """
import pathlib
(file,) = pathlib.Path("/usr/lib").glob("*/libnvidia-ml.so.580*")
content = file.read_bytes()
assert content.count(b"NVIDIA H200\\0") == 1
new = file.with_name("new")
new.write_bytes(content.replace(b"NVIDIA H200\\0", b"NVIDIA B200\\0"))
new.replace(file)
"""
PACKAGE = "Package: nvidia-driver\nVersion: 1\nArchitecture: all\nMaintainer: played <played@localhost>\nDescription: played\n"

BEFORE_THE_BOOT = {
    "units": "systemctl daemon-reload; systemctl -q enable played-poses played-nfsd site-fabric crio containerd; "
    "systemctl -q disable irqbalance",
    "driver-updated-unattended": f"""mkdir -p {THERE}/package/DEBIAN && printf '{PACKAGE}' > {THERE}/package/DEBIAN/control
dpkg-deb -b {THERE}/package {THERE}/package.deb && dpkg -i {THERE}/package.deb
cp /bin/true /usr/bin/unattended-upgrade
rm -f /etc/systemd/system/apt-daily-upgrade.timer; systemctl daemon-reload; systemctl enable apt-daily-upgrade.timer""",
    "podman-memlock-limited": "cp /bin/true /usr/bin/podman",
    "crio-memlock-limited": "cp /bin/true /usr/bin/crio",
    "mps-setup-unwanted": "cp /usr/bin/tail /usr/bin/nvidia-cuda-mps-control",
    "nouveau-loaded": f"rm -f /etc/modprobe.d/blacklist-nouveau.conf; python3 -c '{NOUVEAU}'",
    "ib-umad-not-loaded": f"python3 -c '{B200}'",
    "gpu-power-limit-unwanted": "mkdir -p /var/lib/nodetune-nvml; echo keep_without_clients=1 > /var/lib/nodetune-nvml/control",
    "nfs-caches-nothing": f"mkdir -p /nfs /sets; printf '%s\\n' '{FSTAB}' '{SYNCHRONOUS}' >> /etc/fstab",
    "scratch-discards-at-once": "sed -i 's|^\\(UUID=.* /data ext4\\) [^ ]*|\\1 discard,nofail|' /etc/fstab",
}
"""Check, or what several have in common → commands, for what the next boot brings."""

LOCK = """
import sys
sys.path.insert(0, sys.argv[1])
import pynvml as nvml
nvml.nvmlInit()
nvml.nvmlDeviceSetGpuLockedClocks(nvml.nvmlDeviceGetHandleByIndex(2), 345, 1200)
"""
BY_HAND = """
import sys
sys.path.insert(0, sys.argv[1])
import pynvml as nvml
nvml.nvmlInit()
for number in range(8):
    nvml.nvmlDeviceSetPersistenceMode(nvml.nvmlDeviceGetHandleByIndex(number), 1)
"""
PROCESSES = "/run/nodetune-nvml/gpu2/processes"
LINK = f"$(basename $(dirname $(grep -l {QUEUES} /sys/class/net/*/address)))"
VECTORS = "/sys/class/net/ens10/device/msi_irqs/*"
AFTER_THE_BOOT = {
    "dirty-limit-low": "sysctl -q vm.dirty_bytes=4194304",
    "gpu-persistence-until-boot": f"systemctl -q disable --now nvidia-persistenced; python3 -B -c '{BY_HAND}' {THERE}",
    "gpu-sm-clock-held-down": f"python3 -B -c '{LOCK}' {THERE} && mkdir -p {PROCESSES} && echo 1073741824 > {PROCESSES}/1",
    "nic-irqs-remote": f"for i in {VECTORS}; do echo 0-3 > /proc/irq/${{i##*/}}/smp_affinity_list; done",
    "nic-queues-too-few": f"ethtool -l {LINK} | grep Combined; ethtool -L {LINK} combined 1 2>&1",
    "nfs-single-connection": "systemctl start nfs.mount sets.mount; findmnt /nfs && findmnt /sets || { systemctl status played-nfsd nfs.mount; dmesg | tail -20; }",
    "nfs-slot-table-small": "sysctl -q sunrpc.tcp_max_slot_table_entries=16",
    "ib-umad-not-loaded": "modprobe -r ib_umad",
}

PINNED = ("gpu-sm-clock-held-down",)
"""Seen only while a process is on the GPU, for which all that disturbs would wait: so it is fixed before the others."""

SERVER = (
    "aspm-saves-power",
    "crio-memlock-limited",
    "data-written-synchronously",
    "deep-idle-allowed",
    "dirty-background-limit-high",
    "dirty-limit-high",
    "dirty-limit-low",
    "docker-shm-small",
    "driver-updated-unattended",
    "fabricmanager-not-running",
    "gpu-persistence-until-boot",
    "gpu-power-limit-unwanted",
    "ib-umad-not-loaded",
    "iommu-translates-dma",
    "mps-setup-unwanted",
    "nfs-caches-nothing",
    "nfs-read-ahead-small",
    "nfs-single-connection",
    "nfs-slot-table-small",
    "nic-irqs-remote",
    "nic-queues-too-few",
    "nouveau-loaded",
    "path-mtu-probing-off",
    "podman-memlock-limited",
    "processes-of-containers-few",
    "scratch-discards-at-once",
)
CLOUD = (
    "containers-memlock-limited",
    "inotify-instances-few",
    "min-free-kbytes-excessive",
    "nvme-timeout-short-on-aws",
)
CHECKS = (*PINNED, *SERVER, *CLOUD)
SITE = """
checks:
  gpu-power-limit-unwanted: {accept: {by_model: {NVIDIA B200: 600W}}, set: {NVIDIA B200: 600W}}
  mps-setup-unwanted:
    accept: {where: {daemons: 1, user: root, pipe_directory: /tmp/nvidia-mps, compute_mode: exclusive_process}}
    set: {user: root, pipe_directory: /tmp/nvidia-mps}
"""

GPUS = f'cd {THERE} && python3 -B -c "import pynvml as nvml; nvml.nvmlInit(); print(*{{{{nvml.{{0}}(nvml.nvmlDeviceGetHandleByIndex(gpu)) for gpu in range(8)}}}})"'
WITNESSES = {
    "aspm-saves-power": (
        "cat /sys/module/pcie_aspm/parameters/policy",
        "default [performance] powersave powersupersave",
    ),
    "containers-memlock-limited": (
        "awk '/locked memory/ {print $4, $5}' /proc/$(pidof -s containerd)/limits",
        "unlimited unlimited",
    ),
    "crio-memlock-limited": ("grep -ho 'memlock=[-0-9:]*' /etc/crio/crio.conf.d/* | tail -1", "memlock=-1:-1"),
    "data-written-synchronously": ("findmnt -no OPTIONS /sets | tr , '\\n' | grep -cx sync", "0"),
    "deep-idle-allowed": ("cat /sys/devices/system/cpu/cpu*/cpuidle/state2/disable | sort -u", "1"),
    "dirty-background-limit-high": ("sysctl -n vm.dirty_background_bytes", str(2 << 30)),
    "dirty-limit-high": ("sysctl -n vm.dirty_bytes", str(8 << 30)),
    "dirty-limit-low": ("sysctl -n vm.dirty_bytes", str(8 << 30)),
    "docker-shm-small": (
        "python3 -c \"import json; print(json.load(open('/etc/docker/daemon.json')))\"",
        "{'bridge': 'none', 'default-shm-size': '16g'}",
    ),
    "driver-updated-unattended": (
        "apt-config dump Unattended-Upgrade::Package-Blacklist | grep -c nvidia-driver",
        "1",
    ),
    "fabricmanager-not-running": (
        "systemctl is-active nvidia-fabricmanager; systemctl is-enabled nvidia-fabricmanager",
        "active\nenabled",
    ),
    "gpu-persistence-until-boot": (
        "systemctl is-active nvidia-persistenced; systemctl is-enabled nvidia-persistenced",
        "active\nenabled",
    ),
    "gpu-power-limit-unwanted": (GPUS.format("nvmlDeviceGetPowerManagementLimit"), "600000"),
    "gpu-sm-clock-held-down": ("cat /run/nodetune-nvml/gpu2/sm_clock_max 2>/dev/null || echo not locked", "not locked"),
    "ib-umad-not-loaded": ("grep -o '^ib_umad' /proc/modules", "ib_umad"),
    "inotify-instances-few": ("sysctl -n fs.inotify.max_user_instances", "8192"),
    "iommu-translates-dma": ("cat /sys/kernel/iommu_groups/*/type | sort -u", "identity"),
    "min-free-kbytes-excessive": ("[ $(sysctl -n vm.min_free_kbytes) -lt 40000 ] && echo small", "small"),
    "mps-setup-unwanted": (
        f"ps -o user= -C nvidia-cuda-mps; {GPUS.format('nvmlDeviceGetComputeMode')}",
        "root\n3",
    ),
    "nfs-caches-nothing": ("findmnt -no OPTIONS /nfs | tr , '\\n' | grep -cx noac", "0"),
    "nfs-read-ahead-small": (
        "for place in /nfs /sets; do cat /sys/class/bdi/$(mountpoint -d $place)/read_ahead_kb; done",
        "15360\n15360",
    ),
    "nfs-single-connection": ("findmnt -no OPTIONS /nfs | grep -o 'nconnect=[0-9]*'", "nconnect=8"),
    "nfs-slot-table-small": ("sysctl -n sunrpc.tcp_max_slot_table_entries", "128"),
    "nic-irqs-remote": (
        f"for i in {VECTORS}; do cat /proc/irq/${{i##*/}}/smp_affinity_list; done | tr -d '4567,-' | sort -u",
        "",
    ),
    "nic-queues-too-few": (f"ethtool -l {LINK} | awk '/^Combined/ {{print $2}}' | tail -1", "4"),
    "nouveau-loaded": ("lspci -k -d 10de:2335 | grep -c 'driver in use: nouveau'", "0"),
    "nvme-timeout-short-on-aws": ("cat /sys/module/nvme_core/parameters/io_timeout", "4294967295"),
    "path-mtu-probing-off": ("sysctl -n net.ipv4.tcp_mtu_probing", "1"),
    "podman-memlock-limited": (
        "grep -h default_ulimits /etc/containers/containers.conf.d/* | tail -1",
        'default_ulimits = ["nofile=1024:2048", "memlock=-1:-1"]',
    ),
    "processes-of-containers-few": ("grep -h pids_limit /etc/crio/crio.conf.d/* | tail -1", "pids_limit = 65536"),
    "scratch-discards-at-once": ("findmnt -no OPTIONS /data | tr , '\\n' | grep -cx discard", "0"),
}
"""Check → a command that shares nothing with nodetune, and what it prints once the fix is in force."""

LATER = {
    "iommu-translates-dma",
    "nfs-caches-nothing",
    "nfs-single-connection",
    "nouveau-loaded",
    "nvme-timeout-short-on-aws",
}
"""In force from the next boot on, both ways: after a rollback their files are as they were."""

ASL = """DefinitionBlock ("idle.aml", "SSDT", 2, "FLEET ", "CSTATES ", 1)
{{
{external}
    Scope (\\_SB)
    {{
        Name (FCST, Package () {{ 2, /* of type C1, which is the instruction HLT: how it is entered, type, latency, power */
            Package () {{ ResourceTemplate () {{ Register (FFixedHW, 0, 0, 0) }}, 1, 1, 1000 }},
            Package () {{ ResourceTemplate () {{ Register (FFixedHW, 0, 0, 0) }}, 1, 200, 500 }}
        }})
    }}
{scopes}
}}
"""


class Story(Controller):
    def words(self, checks):
        site = self.folder / "site.yml"
        site.write_text(SITE)
        selected = (word for check in checks for word in ("--select", check))
        return "-i", str(self.inventory), "--site", str(site), "--timeout", "240", *selected

    def fix(self, checks, *words):
        return self("apply", *self.words(checks), "--max-disruption", "reboot", "--yes", *words, code=ANY)

    def judge(self, checks):
        (host,) = self("audit", *self.words(checks), "--fail-on", "never", code=ANY)["hosts"]
        return {each["check"]: each for each in host["findings"]}


def idle_states(folder):
    """Return QEMU's arguments for two idle states that all CPUs have: one of them takes 200 µs to leave."""
    cpus = [f"\\_SB.CPUS.C00{number}" for number in range(8)]
    external = "\n".join(f"    External ({cpu}, DeviceObj)" for cpu in cpus)
    scopes = "\n".join(f"    Scope ({cpu}) {{ Method (_CST) {{ Return (\\_SB.FCST) }} }}" for cpu in cpus)
    (folder / "idle.asl").write_text(ASL.format(external=external, scopes=scopes))
    run("iasl", "-p", folder / "idle", folder / "idle.asl")
    return "-acpitable", f"file={folder}/idle.aml"


def devices(folder):
    """Return QEMU's arguments for what the template lacks."""
    tap = "tap,id=queues,queues=4,script=no,downscript=no,vhost=off"
    card = f"virtio-net-pci,netdev=queues,bus=rp02,mq=on,vectors=10,speed=25000,duplex=full,mac={QUEUES},romfile="
    return "-netdev", tap, "-device", card, "-device", "intel-iommu,intremap=off", *idle_states(folder)


def plant(machine, faults):
    """Return check → what its commands printed."""
    done = {check: machine.ssh(f"{{ {script}\n}} 2>&1", check=False, timeout=600) for check, script in faults.items()}
    return {check: f"exit code {each.returncode}: {each.stdout[-1500:]}" for check, each in done.items()}


def pose(machine, name):
    machine.ssh(f"echo {name} > {THERE}/pose; sh {THERE}/poses.sh", timeout=600)


@pytest.fixture(scope="module")
def started(fleet, tmp_path_factory):
    """The machine, booted with more devices, and what planting printed."""
    made = fleet(1)[0]
    made.ssh(f"mkdir -p {THERE}")
    made.put(importlib.util.find_spec("pynvml").origin, f"{THERE}/pynvml.py")
    for path, text in FILES.items():
        made.write(path, text)
    printed = plant(made, BEFORE_THE_BOOT)
    more = devices(tmp_path_factory.mktemp("acpi"))
    made.ssh("sync; systemctl poweroff --no-block", check=False)
    made.hang_up()
    made.wait_for_end()
    made.launch = partial(made.launch, *more)
    made.power_on()
    printed.update(plant(made, AFTER_THE_BOOT))
    yield SimpleNamespace(machine=made, printed=printed)
    fleet.stop(made)


@pytest.fixture(scope="module")
def machine(started):
    return started.machine


@pytest.fixture(scope="module")
def nodetune(machine, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machine)


def seen(machine):
    """Return check → what its witness prints."""
    script = (
        "import json, subprocess, sys\n"
        "done = {check: subprocess.run(each, shell=True, capture_output=True, text=True) for check, each in json.loads(sys.argv[1]).items()}\n"
        "print(json.dumps({check: (each.stdout + each.stderr).strip() for check, each in done.items()}))\n"
    )
    machine.write(f"{THERE}/witness.py", script)
    machine.write(f"{THERE}/witness.json", json.dumps({check: command for check, (command, _) in WITNESSES.items()}))
    asked = f'python3 -B {THERE}/witness.py "$(cat {THERE}/witness.json)"'
    return json.loads(machine.ssh(asked, timeout=600).stdout)


@pytest.fixture(scope="module")
def before(machine):
    return SimpleNamespace(files=witness.files(machine), seen=seen(machine))


@pytest.fixture(scope="module")
def runs(nodetune, machine, before):
    """The three runs, of which the last reboots the machine."""
    made = [nodetune.fix(PINNED)]
    machine.ssh(f"rm -rf {PROCESSES}")
    made.append(nodetune.fix(SERVER))
    pose(machine, "cloud")
    made.append(nodetune.fix(CLOUD, "--reboot"))
    return made


@pytest.fixture(scope="module")
def audited(nodetune, runs):
    """Check → its finding, before anything was fixed."""
    found = {}
    for each, checks in zip(runs, (PINNED, SERVER, CLOUD), strict=True):
        assert each["run"], f"nothing was found to fix of {checks}: {each}"
        (host,) = json.loads(nodetune.record(each["run"], "before.json").read_text())["hosts"]
        found.update({one["check"]: one for one in host["findings"] if one["check"] in checks})
    return found


@pytest.fixture(scope="module")
def outcomes(runs):
    return {step["check"]: (step["outcome"], step["reason"]) for each in runs for step in each["steps"]}


@pytest.fixture(scope="module")
def after(nodetune, machine, runs):
    """The machine after the boot that the last run made."""
    judged = nodetune.judge(CLOUD)
    pose(machine, "server")
    judged.update(nodetune.judge((*PINNED, *SERVER)))
    return SimpleNamespace(judged=judged, seen=seen(machine))


@pytest.fixture(scope="module")
def rolled_back(nodetune, machine, runs, after):
    codes = {
        each["run"]: nodetune("rollback", each["run"], "--yes", "--timeout", "240", code=ANY) for each in runs[::-1]
    }
    return SimpleNamespace(codes=codes, files=witness.files(machine), seen=seen(machine))


@pytest.mark.parametrize("check", CHECKS)
def test_each_fault_is_named(started, audited, check):
    found = audited.get(check)
    assert found, f"{check} was not judged"
    assert found["status"] == "fail", f"{check} {json.dumps(found)}; planting it printed {started.printed.get(check)}"


@pytest.mark.parametrize("check", CHECKS)
def test_each_fault_is_fixed_now_or_at_the_reboot(outcomes, check):
    outcome, reason = outcomes.get(check, ("in no run", ""))
    wanted = ("fixed", "pending reboot") if check in SERVER else ("fixed",)
    assert outcome in wanted, f"{check}: {outcome} {reason}"


@pytest.mark.parametrize("check", CHECKS)
def test_a_witness_sees_each_fix_after_the_boot(before, after, check):
    command, wanted = WITNESSES[check]
    assert before.seen[check] != wanted, f"{check}: `{command}` printed that before any fix: the fault was not there"
    assert after.seen[check] == wanted, (
        f"{check}: `{command}` printed {after.seen[check]!r}, before {before.seen[check]!r}"
    )


@pytest.mark.parametrize("check", CHECKS)
def test_the_next_audit_agrees(after, check):
    found = after.judged.get(check)
    assert found, f"{check} was not judged"
    assert found["status"] == "pass", f"{check}: {json.dumps(found)}"


def test_a_rollback_restores_every_file(before, rolled_back):
    assert witness.changed(before.files, rolled_back.files) == {}, rolled_back.codes


@pytest.mark.parametrize("check", [check for check in CHECKS if check not in LATER])
def test_a_rollback_restores_what_is_in_force(before, rolled_back, check):
    was, now = before.seen[check], rolled_back.seen[check]
    assert now == was, f"{check}: `{WITNESSES[check][0]}` printed {was!r} before the fix and prints {now!r}"
