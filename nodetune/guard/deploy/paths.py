"""Where what is on a guarded node."""

from __future__ import annotations

ETC, OPT = "/etc/nodetune", "/opt/nodetune"
POLICY = f"{ETC}/guard.json"
HOME = f"{OPT}/guard"
RUN = "/run/nodetune/guard"
ARCHIVES = "/var/lib/nodetune/programs"
SCRIPTS = ("prolog", "epilog", "healthcheck", "taskprolog")
"""The programs that Slurm calls, by their names in HOME."""

CHECK = "check"
UNITS = "/etc/systemd/system"
SERVICE, TIMER = "nodetune-guard.service", "nodetune-guard.timer"
