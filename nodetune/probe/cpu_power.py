"""The power limits of processors, for the family `cpu`: from RAPL (Intel), HSMP (AMD from Zen 5 on) and ACPI (Grace)."""

import errno
import re

from . import read

ZONES = "/sys/class/powercap"
METERS = "/sys/class/hwmon"
SOCKET = re.compile(r"Grace Power Socket \d+$")


def limits():
    """Return {package: {"limit_uw", "max_uw"}} of the processors that have a limit and report its highest value."""
    found = dict(_of_zones())
    found.update(_of_meters())
    return read.value(found) if found else read.absent("no power limit of a processor in sysfs")


def _of_zones():
    for zone in read.names_in(ZONES):
        folder = "{}/{}".format(ZONES, zone)
        name = read.text_or(folder + "/name")
        if name.startswith("package-") and read.text_or(folder + "/enabled") == "1":
            for pair in _pair(zone, name, *_long_term(folder)):
                yield pair


def _long_term(folder):
    """Return the files with the limit over seconds, and the power that the processor is made for."""
    numbers = [file[11:-5] for file in read.names_in(folder) if re.match(r"constraint_\d+_name$", file)]
    for number in numbers:
        constraint = "{}/constraint_{}".format(folder, number)
        if read.text_or(constraint + "_name") == "long_term":
            return constraint + "_power_limit_uw", constraint + "_max_power_uw"
    return None, None


def _of_meters():
    for meter in read.names_in(METERS):
        folder, name = "{}/{}".format(METERS, meter), read.text_or("{}/{}/name".format(METERS, meter))
        for place in (folder, folder + "/device"):
            label = read.text_or(place + "/power1_oem_info")
            if name == "amd_hsmp_hwmon" or (name == "power_meter" and SOCKET.match(label)):
                for pair in _pair(meter, label or name, place + "/power1_cap", place + "/power1_cap_max"):
                    yield pair


def _pair(source, name, limit, highest):
    """Yield (package, limits) if both are numbers above zero."""
    limit, highest = (_number(path) for path in (limit, highest))
    if limit and highest:
        yield "{} ({})".format(name, source), {"limit_uw": limit, "max_uw": highest}


def _number(path):
    """Return the number in a file, or None without one. Raise PermissionError."""
    try:
        content = read.text(path) if path else ""
    except OSError as problem:
        if problem.errno in (errno.EACCES, errno.EPERM):
            raise
        return None
    return int(content) if content.isdigit() else None
