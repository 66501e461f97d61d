"""CPUs of system tasks that a site declares: confined on a node whose jobs are pods, after a reboot too, and free again."""

import pytest

from tests.machines.test_apply import Controller

SITE = "checks: {system-tasks-cpus-unwanted: {accept: 0-1, set: 0-1}}\n"
CHECK = "system-tasks-cpus-unwanted"
GROUPS = ("init.scope", "system.slice", "user.slice")
DROP_INS = tuple(f"/etc/systemd/system/{unit}.d/zz-nodetune.conf" for unit in GROUPS)
NO_SLURM = "systemctl disable --now slurmd; rm -f $(command -v slurmd) /lib/systemd/system/slurmd.service"
PODS = "systemd-run --slice=kubepods.slice -p AllowedCPUs=0-7 sleep infinity"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd\n"
EFFECTIVE = " ".join(f"/sys/fs/cgroup/{unit}/cpuset.cpus.effective" for unit in GROUPS)


class Story(Controller):
    def hosts(self):
        site = self.folder / "site.yml"
        site.write_text(SITE)
        return "-i", str(self.inventory), "--site", str(site), "--timeout", "240", "--select", CHECK


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.ssh(NO_SLURM, timeout=300)
    made.write("/var/lib/kubelet/config.yaml", KUBELET)
    made.ssh(PODS)
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def nodetune(machine, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machine)


def effective(machine):
    """Return the CPUs of the three groups, as the kernel has them; nothing for a group without a cpuset."""
    return set(machine.ssh(f"cat {EFFECTIVE} 2>/dev/null", check=False).stdout.split())


@pytest.fixture(scope="module")
def applied(nodetune):
    return nodetune.apply("--yes")


def test_system_tasks_are_confined_now_and_after_a_reboot(nodetune, machine, applied):
    assert effective(machine) == {"0-1"}
    assert machine.ssh("cat /sys/fs/cgroup/kubepods.slice/cpuset.cpus.effective").stdout.strip() == "0-7"
    machine.reboot()
    assert effective(machine) == {"0-1"}


def test_a_rollback_sets_them_free_while_pods_have_cpus_of_their_own(nodetune, machine, applied):
    machine.ssh(PODS)
    nodetune("rollback", applied["run"], "--yes", "--timeout", "240")
    assert machine.ssh(f"ls {' '.join(DROP_INS)}", check=False).stdout == ""
    assert effective(machine) == {"0-7"}
    machine.reboot()
    assert effective(machine) <= {"0-7"}
