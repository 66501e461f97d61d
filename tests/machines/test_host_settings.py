"""Settings of the host's files that are wrong on one machine: named, applied, still right after a reboot, rolled back."""

import pytest

from tests.machines.test_apply import Controller

CONF = """# settings of the site
NCCL_SOCKET_FAMILY=AF_INET
NCCL_DEBUG=INFO

#NCCL_DEBUG=INFO
NCCL_COLLECTIVE_ENABLE=1
  # for one old job, ended with a carriage return
NCCL_PROTO=LL128\r
NCCL_SOCKET_FAMILY=AF_INET
NCCL_BUFFSIZE=4M
NCCL_IB_HCA==bnxt_re0,bnxt_re1
NCCL_COLLNET_ENABLE=1
NCCL_TREE_THRESHOLD=0
SHARP_COLL_LOCK_ON_COMM_INIT=1
NCCL_TOPO_DUMP_FILE=/tmp/topo.xml
NCCL_DEBUG=INFO"""
KEPT = """# settings of the site
NCCL_SOCKET_FAMILY=AF_INET

#NCCL_DEBUG=INFO
  # for one old job, ended with a carriage return
"""
ENVIRONMENT = """PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export TORCH_DISTRIBUTED_DEBUG="DETAIL"
# of the site
NCCL_IB_TC=010
CUDA_LAUNCH_BLOCKING=1
export OMP_NUM_THREADS=96
"""
KEPT_THERE = """PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# of the site
NCCL_IB_TC=010
"""
LIBRARY = "cd /usr/lib/x86_64-linux-gnu; touch libnccl.so.2.27.3; ln -sf libnccl.so.2.27.3 libnccl.so.2"
NO_ENGINES = "systemctl disable --now docker containerd; rm -f $(command -v dockerd) $(command -v containerd)"
PORTS = """modprobe -a dummy rdma_rxe
for i in 0 1 2 3 4 5 6 7
do ip link add port$i type dummy; ip link set port$i up; rdma link add rxe$i type rxe netdev port$i
done"""
PROLOG = "mkdir -p /etc/slurm; echo TaskProlog=/opt/nodetune/guard/taskprolog >> /etc/slurm/slurm.conf"
OF_ROOT = "NCCL_DEBUG=TRACE\n"
SITE = """
add:
  - {id: site-one-thread-a-core, sysfs: /sys/devices/system/cpu/smt/control, accept: "off", set: "off"}
  - {id: site-huge-pages, sysctl: vm.nr_hugepages, accept: {at_least: 8}, set: 8}
"""
WISHES = ("site-one-thread-a-core", "site-huge-pages")
CHECKS = (
    *("library-setting-slow", "nccl-collnet-without-plugin", "nccl-debug-left-on", "nccl-hca-selection-wrong"),
    *(
        "nccl-job-variable-node-wide",
        "nccl-name-unknown",
        "nccl-set-twice",
        "nccl-setting-unsafe",
        "nccl-value-invalid",
    ),
    *("nccl-variable-obsolete", "nccl-variable-without-effect", "thread-count-unsuitable"),
)


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
    made.write("/etc/environment", ENVIRONMENT)
    made.ssh(f"{NO_ENGINES}; {LIBRARY}; {PROLOG}", timeout=300)
    made.ssh(PORTS, timeout=300)
    made.ssh("chmod 640 /etc/nccl.conf; chgrp adm /etc/nccl.conf")
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def nodetune(machine, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machine)


def files(machine):
    told = machine.ssh("stat -c '%a %U %G %n' /etc/nccl.conf /root/.nccl.conf /etc/environment")
    content = machine.ssh("cat /etc/nccl.conf /etc/environment | base64 -w0").stdout
    return told.stdout, content, machine.read("/root/.nccl.conf")


def wishes(machine):
    """Return the state of SMT, the huge pages, and how many CPUs are online."""
    return machine.ssh("cat /sys/devices/system/cpu/smt/control /proc/sys/vm/nr_hugepages; nproc").stdout.split()


@pytest.fixture(scope="module")
def before(machine):
    assert wishes(machine) == ["on", "0", "8"]
    return files(machine)


@pytest.fixture(scope="module")
def applied(nodetune, before):
    return nodetune.apply("--yes", code=4)  # the lines of root's own file, and of a traffic class, stay


def failing(nodetune):
    told = nodetune("audit", *nodetune.hosts(), "--fail-on", "never")
    return {each["check"]: each for each in told["hosts"][0]["findings"] if each["status"] == "fail"}


def test_the_lines_are_taken_out_and_stay_out_after_a_reboot(nodetune, machine, before, applied):
    machine.reboot()
    assert wishes(machine) == ["off", "8", "4"]
    assert machine.read("/etc/nccl.conf") == KEPT
    assert files(machine)[0] == before[0]
    assert machine.read("/etc/environment") == KEPT_THERE
    assert machine.read("/root/.nccl.conf") == OF_ROOT
    left = failing(nodetune)
    assert set(left) == {"nccl-debug-left-on", "nccl-value-invalid"}
    assert list(left["nccl-value-invalid"]["subjects"]) == ["/etc/environment:3 NCCL_IB_TC"]
    assert list(left["nccl-debug-left-on"]["subjects"]) == ["/root/.nccl.conf:1 NCCL_DEBUG"]


def test_a_rollback_brings_back_every_byte(nodetune, machine, before, applied):
    nodetune("rollback", applied["run"], "--yes", "--timeout", "240")
    assert files(machine) == before
    assert wishes(machine) == ["on", "0", "8"]
    ours = "/etc/tmpfiles.d/00-nodetune.conf", "/etc/sysctl.d/zz-nodetune.conf"
    assert machine.ssh(f"ls {' '.join(ours)}", check=False).stdout == ""
    machine.ssh(PORTS, timeout=300)
    assert set(failing(nodetune)) == {*CHECKS, *WISHES}
