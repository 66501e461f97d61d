"""Properties of a card from the name of the GPU."""

import re

FOR_DESKS = re.compile(r"^(?!.*Server Edition).*(RTX|GeForce|Quadro|TITAN)")
"""Cards for workstations and desktops, which have fans of their own. The profile `workstation` has the same pattern."""

GRACE = re.compile(r"\bG[BH][0-9]{3}\b")
"""Superchips with a Grace CPU. GB10 does not count: its CPU and its settings come from another vendor."""
