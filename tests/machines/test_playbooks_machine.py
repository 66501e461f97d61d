"""Every subject's playbook on one machine, by plain ansible-playbook: changed, then ok, kept over a reboot, reverted.

What is true of the machine is seen by its own commands and by `witness`, which share no code with nodetune.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

from tests.machines import inventory, place, witness
from tests.machines.test_apply import MADE_BY_TOOLS
from tests.support.private_host import PLAYBOOKS

SUBJECTS = sorted(path.stem for path in PLAYBOOKS.glob("*.yml") if path.stem != "all")
PYTHON = "/usr/lib/python3/dist-packages"
NCCL = "# ours\nNCCL_DEBUG=WARN\n"
WRONG = f"""
echo always | tee /sys/kernel/mm/transparent_hugepage/enabled > /sys/kernel/mm/transparent_hugepage/defrag
printf '{NCCL}' > /etc/nccl.conf
mkdir -p /etc/docker
echo '{{"live-restore": true}}' > /etc/docker/daemon.json
for disk in /sys/block/nvme*n1; do echo mq-deadline > $disk/queue/scheduler; done
systemctl enable --now irqbalance containerd
systemctl disable --now nvidia-persistenced
for irq in $(ls /sys/class/net/ens10/device/msi_irqs); do echo 0 > /proc/irq/$irq/smp_affinity_list; done
sync
"""
GIVEN = {
    "nodetune_nccl": {"NCCL_IB_HCA": "mlx5_0,mlx5_1"},
    "nodetune_gpu_indexes": list(range(8)),
    "nodetune_storage_sysctl": {"vm.vfs_cache_pressure": 50},
    "nodetune_storage_mounts": {"/data": "noatime"},
}
IRQS = """python3 - <<'END'
import glob, os
def cpus(text):
    return {number for part in text.strip().split(",") for first, _, last in [part.partition("-")]
            for number in range(int(first), int(last or first) + 1)}
def read(path):
    with open(path) as opened:
        return opened.read()
near = []
for card in ("ens2", "ens10", "ens11"):
    local = cpus(read("/sys/class/net/%s/device/local_cpulist" % card))
    for path in glob.glob("/sys/class/net/%s/device/msi_irqs/*" % card):
        irq = os.path.basename(path)
        if read("/sys/kernel/irq/%s/actions" % irq).strip():
            near.append(cpus(read("/proc/irq/%s/smp_affinity_list" % irq)) <= local)
print(len(near) > 8, all(near))
END
systemctl is-active irqbalance"""
QUEUES = "cat /sys/block/nvme*n1/queue/scheduler | grep -o '\\[.*\\]'"
MOUNT = "sysctl -n vm.vfs_cache_pressure; findmnt -no OPTIONS /data | grep -o noatime"
LOCKED = "awk '/locked/ {print $4, $5}' /proc/$(pidof containerd)/limits"
DOCKER = """python3 -c 'import json; print(json.dumps(json.load(open("/etc/docker/daemon.json")), sort_keys=True))'"""
MEMLOCK = '{"memlock": {"Hard": -1, "Name": "memlock", "Soft": -1}}'
THP = "grep -ho '\\[.*\\]' /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag"
NETWORK = "sysctl -n net.core.rmem_max net.core.somaxconn net.ipv4.tcp_slow_start_after_idle"
SLURM = "for name in LimitMEMLOCK LimitNOFILE; do systemctl show slurmd -p $name --value; done"
GPUS = f"python3 -B - {PYTHON} | grep -o '\"persistence\": [^]]*'"
SEEN = {
    "thp": (THP, "[madvise] [madvise]"),
    "limits": ("su - op -c 'ulimit -Sl; ulimit -Hn; ulimit -Su'", "unlimited 1048576 unlimited"),
    "sysctl": ("sysctl -n vm.swappiness vm.max_map_count kernel.pid_max", "10 1048576 4194304"),
    "network": (NETWORK, "268435456 4096 0"),
    "nccl": ("cat /etc/nccl.conf", f"{NCCL}NCCL_IB_HCA=mlx5_0,mlx5_1"),
    "irq": (IRQS, "True True inactive"),
    "gpu": (GPUS, f'"persistence": [{", ".join("1" * 8)}'),
    "storage": (f"{QUEUES}; {MOUNT}", "[none] [none] 50 noatime"),
    "slurm": (SLURM, "infinity 1048576"),
    "containers": (
        f"{LOCKED}; {DOCKER}",
        f'unlimited unlimited {{"default-shm-size": "16g", "default-ulimits": {MEMLOCK}, "live-restore": true}}',
    ),
}
"""Subject → a command on the machine, and what it prints once the playbook has run, but for white space."""


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.put(importlib.util.find_spec("pynvml").origin, f"{PYTHON}/pynvml.py")
    made.ssh(WRONG)
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def before(machine):
    return witness.files(machine), witness.running(machine)


@pytest.fixture(scope="module")
def played(machine, before, tmp_path_factory):
    """played("thp", …) plays it as a person does who logs in as `op`, and returns how many tasks changed something."""
    folder = tmp_path_factory.mktemp("controller")
    become = {"ansible_become": True, "ansible_become_password": place.OP_PASSWORD, "ansible_ssh_timeout": 120}
    hosts = inventory.write(folder / "hosts.yml", [machine], user="op", **become)
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTEST_"))}
    environment |= {"HOME": str(folder), "LC_ALL": "C.UTF-8", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_PIPELINING": "1"}

    def play(subject, *options):
        program = os.path.join(os.path.dirname(sys.executable), "ansible-playbook")
        words = [program, "-i", str(hosts), str(PLAYBOOKS / f"{subject}.yml"), "-e", json.dumps(GIVEN), *options]
        done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, timeout=1500)
        assert done.returncode == 0, done.stdout + done.stderr
        return int(re.search(r"changed=(\d+)", done.stdout)[1])

    return play


def seen(machine, subject):
    script = witness.GPUS if subject == "gpu" else None
    return machine.ssh(SEEN[subject][0], input=script, check=False).stdout.split()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_playbook_changes_its_subject(machine, played, subject):
    wanted = SEEN[subject][1].split()
    assert seen(machine, subject) != wanted
    assert played(subject) > 0
    assert seen(machine, subject) == wanted


def test_all_of_them_are_ok_then(played):
    assert played("all") == 0


def test_all_subjects_are_the_same_after_a_reboot(machine, played):
    machine.reboot()
    machine.ssh("systemctl is-system-running --wait", check=False)
    assert {subject: seen(machine, subject) for subject in SUBJECTS} == {
        subject: SEEN[subject][1].split() for subject in SUBJECTS
    }


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_playbook_takes_its_subject_back(machine, played, subject):
    assert played(subject, "-e", "nodetune_state=reverted") > 0
    assert seen(machine, subject) != SEEN[subject][1].split()


OF_THIS_BOOT = ("arguments", "sysctl vm.min_free_kbytes")
"""grub.cfg as update-grub had written it names the root by UUID; the kernel computes min_free_kbytes from what is free at boot."""


def test_the_machine_is_as_before_byte_for_byte(machine, before):
    files, running = before
    left = witness.changed(files, witness.files(machine))
    assert {path: each for path, each in left.items() if not MADE_BY_TOOLS.fullmatch(path)} == {}
    changed = witness.changed(running, witness.running(machine))
    assert {name: each for name, each in changed.items() if None not in each and name not in OF_THIS_BOOT} == {}
