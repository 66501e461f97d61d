"""A host of one's own for plays on this machine: folders of a test in the places of /etc, /run, /var/lib, and of files of /proc and /sys.

systemctl and udevadm are substitutes in there, because no systemd runs in a mount namespace.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
DEFAULTS = yaml.safe_load((PLAYBOOKS / "roles/tuning/defaults/main.yml").read_text())
GPU_ADDRESS = "0000:3b:00.0"

SYSTEMCTL = """#!/bin/sh
for unit; do :; done
state=/run/units/$unit
case "$*" in
    *NeedDaemonReload*) echo no ;;
    *"--value -p ActiveState"*) echo active ;;
    show*) echo LoadState=loaded; echo ActiveState="$(cat "$state.active")"; echo SubState=running ;;
    is-enabled*) cat "$state.enabled" ;;
    is-active*) [ "$(cat "$state.active")" = active ] || exit 3 ;;
    *" mask "*) echo masked > "$state.enabled" ;;
    *" unmask "*) echo disabled > "$state.enabled" ;;
    *" enable "*) echo enabled > "$state.enabled" ;;
    *" disable "*) echo disabled > "$state.enabled" ;;
    "start "*) echo active > "$state.active" ;;
    "stop "*) echo inactive > "$state.active" ;;
    *) echo "$*" >> /run/commands ;;
esac
"""

KERNEL = {
    "thp/enabled": "always\n",
    "thp/defrag": "always\n",
    "proc-sys/kernel/random/boot_id": Path("/proc/sys/kernel/random/boot_id").read_text(),
    **{
        f"proc-sys/{name.replace('.', '/')}": "1\n"
        for name in (
            *DEFAULTS["nodetune_sysctl"],
            *DEFAULTS["nodetune_network"],
            "net.core.rmem_max",
            "net.core.wmem_max",
        )
        if name != "kernel.numa_balancing"
    },
    "proc-sys/net/ipv4/tcp_rmem": "4096 131072 6291456\n",
    "proc-sys/net/ipv4/tcp_wmem": "4096 16384 4194304\n",
    "proc-sys/vm/vfs_cache_pressure": "100\n",
    "block/nvme0n1/queue/scheduler": "mq-deadline\n",
    "block/sda/queue/scheduler": "mq-deadline\n",
    f"pci/{GPU_ADDRESS}/class": "0x030200\n",
    f"pci/{GPU_ADDRESS}/vendor": "0x10de\n",
    f"pci/{GPU_ADDRESS}/local_cpulist": "0\n",
    f"pci/{GPU_ADDRESS}/msi_irqs/70": "msix\n",
    "irq/70/smp_affinity_list": "1\n",
    "kernel-irq/70/actions": "nvidia\n",
    "etc/nccl.conf": "# ours\nNCCL_DEBUG=WARN\n",
    "etc/fstab": "none /mnt tmpfs defaults 0 0\n",
    "etc/docker/daemon.json": '{"live-restore": true}\n',
    **{
        f"etc/systemd/system/{name}.service": "[Service]\n"
        for name in ("slurmd", "containerd", "crio", "docker", "podman")
    },
    **{
        f"run/units/{name}.service.{of}": f"{text}\n"
        for name in ("irqbalance", "nodetune-irq", "nodetune-gpu")
        for of, text in (
            ("active", "active" if name == "irqbalance" else "inactive"),
            ("enabled", "enabled" if name == "irqbalance" else "disabled"),
        )
    },
}
BOUND = {
    "run": "/run",
    "lib": "/var/lib",
    "etc": "/etc",
    "thp": "/sys/kernel/mm/transparent_hugepage",
    "proc-sys": "/proc/sys",
    "block": "/sys/block",
    "pci": "/sys/bus/pci/devices",
    "irq": "/proc/irq",
    "kernel-irq": "/sys/kernel/irq",
}


class Host:
    """A mount namespace with folders of the test in these places; it lasts as long as the test."""

    def __init__(self, folder):
        self.folder = folder
        for path, text in KERNEL.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / f"pci/{GPU_ADDRESS}/driver").symlink_to("/drivers/nvidia")
        (folder / "lib").mkdir()
        (folder / "home").mkdir()
        (folder / "systemctl").write_text(SYSTEMCTL)
        (folder / "systemctl").chmod(0o755)
        tools = {shutil.which(tool) for tool in ("systemctl", "udevadm")} - {None}
        binds = [
            *((folder / name, place) for name, place in BOUND.items()),
            *((folder / "systemctl", each) for each in tools),
        ]
        mounts = "".join(f"mount --bind {source} {place} && " for source, place in binds)
        script = f"{mounts} mount -t tmpfs none /mnt && echo ready && exec cat"
        command = ["unshare", "--mount", "sh", "-c", script]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout.readline() == "ready\n"

    def close(self):
        self._holder.communicate()

    def run(self, *command, **environment):
        inside = ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--", *map(str, command)]
        env = {name: text for name, text in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTEST_"))}
        env |= {"HOME": str(self.folder / "home"), "LC_ALL": "C.UTF-8", "ANSIBLE_NOCOLOR": "1"}
        return subprocess.run(inside, env=env | environment, cwd="/", capture_output=True, text=True)

    def play(self, playbook, *options, **environment):
        """Play one of playbooks/, or a path, as a person does; (changed tasks, its output)."""
        path = playbook if isinstance(playbook, Path) else PLAYBOOKS / f"{playbook}.yml"
        variables = {"ansible_become": False, "ansible_python_interpreter": sys.executable}
        here = ("-i", "localhost,", "-c", "local", "-e", json.dumps(variables))
        done = self.run(Path(sys.executable).parent / "ansible-playbook", *here, path, *options, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return int(re.search(r"changed=(\d+)", done.stdout)[1]), done.stdout

    def seen(self):
        """Every file that a play may change, outside of nodetune's own state: path → (mode, text), and the mounts."""
        files = [
            path for name in BOUND if name not in ("run", "lib") for path in sorted((self.folder / name).rglob("*"))
        ]
        texts = {
            str(path.relative_to(self.folder)): (path.stat().st_mode, self._content(path))
            for path in files
            if path.is_file()
        }
        units = {path.name: path.read_text() for path in (self.folder / "run/units").iterdir()}
        return texts, units, self.run("findmnt", "-n", "-o", "OPTIONS", "/mnt").stdout

    def _content(self, path):
        """The bytes of a file; of one of the kernel without the line end, which the kernel itself adds."""
        content = path.read_bytes()
        return content if (self.folder / "etc") in path.parents else content.rstrip(b"\n")

    def text(self, path):
        return (self.folder / path).read_text()

    def commands(self):
        return self.text("run/commands").splitlines()


@contextlib.contextmanager
def made(folder):
    """Such a host, or a skipped test where none can be made."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root, to make a mount namespace")
    shutil.copytree("/etc", folder / "etc", symlinks=True, ignore_dangling_symlinks=True)
    host = Host(folder)
    try:
        yield host
    finally:
        host.close()
