"""What a machine is like, seen without nodetune: its files byte for byte, its running values, its GPUs.

Snapshots are taken by one script on the machine, so that they cost one login; `host` gives testinfra's view.
"""

import json
from pathlib import Path

import testinfra

TREES = ("/etc", "/usr/local", "/boot/grub/grub.cfg")
MOVING = (
    "fs.dentry-state",
    "fs.epoll",
    "fs.file-nr",
    "fs.inode",
    "fs.quota",
    "kernel.ns_last_pid",
    "kernel.pty.nr",
    "kernel.random",
    "kernel.tainted",
    "net.core.netdev_rss_key",
    "net.ipv4.inet_peer",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.netfilter.nf_conntrack",
    "user.max_",
    "vm.stat",
    "vm.user_reserve_kbytes",
)
"""Kernel parameters that count something, or that the kernel works out again at each boot."""

FILES = """
import hashlib, json, os, stat, sys
def seen(path):
    about = os.lstat(path)
    if stat.S_ISLNK(about.st_mode):
        return ["link", os.readlink(path)]
    kind = "folder" if stat.S_ISDIR(about.st_mode) else "file"
    content = open(path, "rb").read() if kind == "file" else b""
    return [kind, oct(about.st_mode), about.st_uid, about.st_gid, hashlib.sha256(content).hexdigest()]
found = {}
for tree in sys.argv[1:]:
    found[tree] = seen(tree)
    for folder, folders, files in os.walk(tree):
        for name in folders + files:
            path = os.path.join(folder, name)
            found[path] = seen(path)
print(json.dumps(found))
"""

RUNNING = """
import glob, json, subprocess, sys
def says(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
def read(path):
    with open(path) as opened:
        return opened.read().strip()
def states(*words):
    for _ in range(8):  # a busy systemd does not answer within systemctl's 25 s
        lines = says("systemctl", "--no-legend", "--plain", "--full", *words).splitlines()
        if lines:
            return {line.split()[0]: line.split() for line in lines}
    sys.exit("systemd does not answer: %s" % (words,))
found = {}
for line in says("sysctl", "-a").splitlines():
    name, _, value = line.partition(" = ")
    if not name.startswith(tuple(json.loads(sys.argv[1]))):
        found["sysctl " + name] = value
patterns = ("/sys/kernel/mm/transparent_hugepage/[de]*", "/sys/kernel/mm/ksm/run",
            "/sys/devices/system/cpu/cpufreq/*/scaling_governor", "/sys/class/net/e*/mtu")
for pattern in patterns:
    for path in glob.glob(pattern):
        found[path] = read(path)
for disk in glob.glob("/sys/block/nvme*"):  # which of them has which name is another matter after each boot
    for setting in ("scheduler", "read_ahead_kb"):
        found["disk %s %s" % (read(disk + "/device/serial"), setting)] = read(disk + "/queue/" + setting)
for name, words in states("list-unit-files", "--type=service,swap").items():
    if not name.startswith(("nodetune-", "user-runtime-dir@", "user@")):
        found["at boot " + name] = words[1]
for name in ("containerd", "docker", "iperf3", "nvidia-persistenced", "irqbalance", "slurmd", "site-fabric"):
    found["runs " + name] = says("systemctl", "is-active", name).strip()
found["data"] = says("findmnt", "-no", "OPTIONS", "/data").strip()
found["swap"] = [line.split()[0] for line in read("/proc/swaps").splitlines()[1:]]
found["rings"] = says("ethtool", "-g", "enp0s16").partition("Current")[2].split()
found["modules"] = sorted({"nvidia", "nvidia_uvm", "nouveau"} & {line.split()[0] for line in open("/proc/modules")})
found["remove ipc"] = says("busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1",
                           "org.freedesktop.login1.Manager", "RemoveIPC").strip()
found["arguments"] = read("/proc/cmdline")
print(json.dumps(found))
"""

GPUS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import pynvml as nvml
nvml.nvmlInit()
gpus = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(8)]
def instances(gpu):
    found = 0
    for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number)
        except nvml.NVMLError_NotFound:
            continue
        found += 1
    return found
print(json.dumps({
    "persistence": [nvml.nvmlDeviceGetPersistenceMode(gpu) for gpu in gpus],
    "compute": [nvml.nvmlDeviceGetComputeMode(gpu) for gpu in gpus],
    "accounting": [nvml.nvmlDeviceGetAccountingMode(gpu) for gpu in gpus],
    "graphics": [nvml.nvmlDeviceGetApplicationsClock(gpu, nvml.NVML_CLOCK_GRAPHICS) for gpu in gpus],
    "memory": [nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM) for gpu in gpus],
    "ecc": [nvml.nvmlDeviceGetEccMode(gpu) for gpu in gpus],
    "mig": [nvml.nvmlDeviceGetMigMode(gpu) for gpu in gpus],
    "instances": [instances(gpu) for gpu in gpus],
}))
"""


def _answer(machine, script, *words):
    given = " ".join(f"'{word}'" for word in words)
    return json.loads(machine.ssh(f"python3 -B - {given}", input=script).stdout)


def files(machine):
    """Path → kind, mode, owner and digest, of everything that an apply may write."""
    return _answer(machine, FILES, *TREES)


def running(machine):
    """Name → value, of what is in force now."""
    return _answer(machine, RUNNING, json.dumps(MOVING))


def gpus(machine, pynvml_folder):
    """Setting → its value on each of the eight GPUs, as NVML tells it."""
    return _answer(machine, GPUS, pynvml_folder)


def changed(before, after):
    """Name → (before, after), of what is not the same in two snapshots."""
    names = sorted({*before, *after})
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def host(machine, folder: Path):
    """testinfra's connection to the machine, as root."""
    config = folder / "witness_ssh_config"
    lines = [option.removeprefix("-o").replace("=", " ", 1) for option in machine.ssh_options() if "=" in option]
    config.write_text("\n".join(["Host *", f"IdentityFile {machine.image.login_key}", *lines]) + "\n")
    return testinfra.get_host(f"ssh://root@{machine.address}", ssh_config=str(config), controlpersist=300, sudo=False)
