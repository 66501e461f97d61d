"""Where what is on a guarded node."""

ETC, OPT = "/etc/nodetune", "/opt/nodetune"
POLICY = f"{ETC}/guard.json"
HOME = f"{OPT}/guard"
RUN = "/run/nodetune/guard"
VAR = "/var/lib/nodetune"
KEPT = f"{VAR}/guard"
ARCHIVES = f"{VAR}/programs"
SCRIPTS = ("prolog", "epilog", "healthcheck", "taskprolog")
"""The programs that Slurm calls, by their names in HOME."""

PYTHONS = tuple(f"/usr/bin/python3{minor}" for minor in ("", ".14", ".13", ".12", ".11", ".10", ".9"))
"""The interpreters that may run it, best first: the system's own is looked after by its updates."""

OLDEST_PYTHON = (3, 9)

CHECK = "check"
UNITS = "/etc/systemd/system"
SERVICE, TIMER = "nodetune-guard.service", "nodetune-guard.timer"

PROGRAM = "/opt/nodetune"
"""Where the image of the pods has the program."""
