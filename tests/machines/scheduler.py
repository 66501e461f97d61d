"""A machine as a cluster of its own: munge, slurmctld and slurmd on it, in service also after a boot."""

from tests.machines.place import until

UNITS = "munge slurmctld slurmd"
CONF = """\
ClusterName=fleet
SlurmctldHost={name}(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5
StateSaveLocation=/var/spool/slurm-state
SlurmdSpoolDir=/var/spool/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={name} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def start(machine):
    """Returns when jobs may start there."""
    machine.write("/etc/slurm/slurm.conf", CONF.format(name=machine.name))
    machine.ssh("install -d -o slurm /var/spool/slurm-state && mkdir -p /var/spool/slurmd && systemctl daemon-reload")
    machine.ssh(f"systemctl -q enable {UNITS} && for unit in {UNITS}; do systemctl start $unit || exit 1; done")
    reaches(machine, "idle")


def state(machine):
    """The node's, as sinfo says it."""
    return machine.ssh("sinfo -h -o %T", check=False).stdout.strip()


def reaches(machine, *wanted):
    """Wait until the node is in one of these states."""
    until(f"the node is {' or '.join(wanted)}", lambda: state(machine) in wanted, every=1)
