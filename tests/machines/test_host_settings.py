"""Settings of the host's files that are wrong on one machine: named, applied, still right after a reboot, rolled back."""

import pytest

from tests.machines.test_apply import Controller

CONF = """# settings of the site
NCCL_SOCKET_FAMILY=AF_INET
NCCL_DEBUG=INFO

#NCCL_DEBUG=INFO
NCCL_COLLECTIVE_ENABLE=1
  # for one old job, ended with a carriage return
NCCL_GDR_FLUSH_DISABLE=1\r
NCCL_DEBUG=INFO"""
KEPT = """# settings of the site
NCCL_SOCKET_FAMILY=AF_INET

#NCCL_DEBUG=INFO
  # for one old job, ended with a carriage return
"""
OF_ROOT = "NCCL_DEBUG=TRACE\n"
SITE = """
add:
  - {id: site-one-thread-a-core, sysfs: /sys/devices/system/cpu/smt/control, accept: "off", set: "off"}
  - {id: site-huge-pages, sysctl: vm.nr_hugepages, accept: {at_least: 8}, set: 8}
"""
WISHES = ("site-one-thread-a-core", "site-huge-pages")
CHECKS = ("nccl-debug-left-on", "nccl-name-unknown", "nccl-setting-unsafe")


class Story(Controller):
    def hosts(self):
        site = self.folder / "site.yml"
        site.write_text(SITE)
        selected = (word for check in (*CHECKS, *WISHES) for word in ("--select", check))
        return "-i", str(self.inventory), "--site", str(site), "--timeout", "240", *selected


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.write("/etc/nccl.conf", CONF)
    made.write("/root/.nccl.conf", OF_ROOT)
    made.ssh("chmod 640 /etc/nccl.conf; chgrp adm /etc/nccl.conf")
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def nodetune(machine, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machine)


def files(machine):
    told = machine.ssh("stat -c '%a %U %G %n' /etc/nccl.conf /root/.nccl.conf")
    return told.stdout, machine.ssh("base64 -w0 /etc/nccl.conf").stdout, machine.read("/root/.nccl.conf")


def wishes(machine):
    """Return the state of SMT, the huge pages, and how many CPUs are online."""
    return machine.ssh("cat /sys/devices/system/cpu/smt/control /proc/sys/vm/nr_hugepages; nproc").stdout.split()


@pytest.fixture(scope="module")
def before(machine):
    assert wishes(machine) == ["on", "0", "8"]
    return files(machine)


@pytest.fixture(scope="module")
def applied(nodetune, before):
    return nodetune.apply("--yes", code=4)  # the line of root's own file stays


def failing(nodetune):
    told = nodetune("audit", *nodetune.hosts(), "--fail-on", "never")
    return {each["check"]: each for each in told["hosts"][0]["findings"] if each["status"] == "fail"}


def test_the_lines_are_taken_out_and_stay_out_after_a_reboot(nodetune, machine, before, applied):
    machine.reboot()
    assert wishes(machine) == ["off", "8", "4"]
    assert machine.read("/etc/nccl.conf") == KEPT
    assert files(machine)[0] == before[0]
    assert machine.read("/root/.nccl.conf") == OF_ROOT
    left = failing(nodetune)
    assert set(left) == {"nccl-debug-left-on"}
    assert list(left["nccl-debug-left-on"]["subjects"]) == ["/root/.nccl.conf:1 NCCL_DEBUG"]


def test_a_rollback_brings_back_every_byte(nodetune, machine, before, applied):
    nodetune("rollback", applied["run"], "--yes", "--timeout", "240")
    assert files(machine) == before
    assert wishes(machine) == ["on", "0", "8"]
    ours = "/etc/tmpfiles.d/00-nodetune.conf", "/etc/sysctl.d/zz-nodetune.conf"
    assert machine.ssh(f"ls {' '.join(ours)}", check=False).stdout == ""
    assert set(failing(nodetune)) == {*CHECKS, *WISHES}
