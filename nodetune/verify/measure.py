"""How measurements are started on hosts: by srun, or over a connection to each host."""

from __future__ import annotations

from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.verify import remote, slurm
from nodetune.verify.run import Measure


def measure_by(connection: ConnectionOptions) -> Measure:
    return slurm.measure if connection.transport == "slurm" else remote.measure
