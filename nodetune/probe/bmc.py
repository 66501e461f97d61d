"""Reports of the baseboard management controller, by ipmitool: `bmc.*`.

The chassis state and the size of the event log cost one short command each. Sensors (`bmc.power_supplies`, `bmc.fans`,
`bmc.temperatures`) need the whole sensor repository, which takes seconds on many boards, so they are read only on request.
"""

import os
import re

from . import read

DEVICE = "/dev/ipmi0"
QUICK_SECONDS = 2
SENSOR_SECONDS = 5
SENSORS = {"power_supplies": "Power Supply", "fans": "Fan", "temperatures": "Temperature"}
FAULTS = ("Power Overload", "Main Power Fault", "Power Control Fault", "Drive Fault", "Cooling/Fan Fault")


def collect(names, step):
    if "present" in names:
        yield "present", read.value(read.exists(DEVICE))
    if set(names) == {"present"}:
        return
    asked = [name for name in SENSORS if name in names]
    hindrance = _hindrance()
    if hindrance:
        for name in ["faults", "event_log", *asked]:
            yield name, hindrance
        return
    for name, command, parse, seconds in _commands(asked):
        step("ipmitool " + " ".join(command))
        yield name, _ask(command, parse, seconds)


def _hindrance():
    """Return a fact with the reason why the controller cannot be asked, or None."""
    if not read.exists(DEVICE):
        return read.absent("no BMC interface (/dev/ipmi0)")
    if read.find_tool("ipmitool") is None:
        return read.absent("ipmitool is not installed: the BMC was not asked")
    if not os.access(read.ROOT + DEVICE, os.R_OK | os.W_OK):
        return read.unread(read.lacks(DEVICE + ": permission denied"))
    return None


def _commands(asked):
    yield "faults", ["chassis", "status"], faults, QUICK_SECONDS
    yield "event_log", ["sel", "info"], event_log, QUICK_SECONDS
    for name in asked:
        yield name, ["sdr", "type", SENSORS[name]], sensors, SENSOR_SECONDS


def _ask(command, parse, seconds):
    try:
        return read.value(parse(read.run([read.ROOT + read.find_tool("ipmitool"), *command], seconds)))
    except OSError as problem:
        return read.unread(read.why(problem))
    except (ValueError, KeyError):
        return read.unread("unexpected answer of ipmitool " + " ".join(command))


def _pairs(content):
    return {name.strip(): text.strip() for name, _, text in (line.partition(":") for line in content.splitlines())}


def faults(content):
    """Return the faults that `ipmitool chassis status` reports. Raise KeyError if a name is missing."""
    state = _pairs(content)
    return [name for name in FAULTS if state[name] == "true"]


def event_log(content):
    """Return {used_percent, entries, overflow} of `ipmitool sel info`; some controllers report no percentage."""
    state = _pairs(content)
    used = re.match(r"(\d+)%", state.get("Percent Used", ""))
    return {
        "used_percent": int(used.group(1)) if used else None,
        "entries": int(state["Entries"]),
        "overflow": state["Overflow"] == "true",
    }


def sensors(content):
    """Parse `ipmitool sdr type` into {sensor: {status, reading}}.

    Example: `PS1 Status | C8h | ok | 10.1 | Presence detected`.
    """
    rows = [[part.strip() for part in line.split("|")] for line in content.splitlines()]
    return {row[0]: {"status": row[2], "reading": row[4]} for row in rows if len(row) == 5}
