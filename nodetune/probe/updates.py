"""Automatic package updates, and whether they exclude the driver: `updates.apt`, `updates.dnf`."""

import configparser
import fnmatch
import os
import re

from . import read

APT_CONF = "/etc/apt/apt.conf"
DPKG_STATUS = "/var/lib/dpkg/status"
DPKG_LONGEST = 32 << 20
DRIVER_PACKAGES = re.compile(
    r"(nvidia-(driver|dkms|kernel|utils|compute-utils|headless|firmware|persistenced|fabricmanager|imex|open)|"
    r"linux-(modules|objects|signatures)-nvidia|libnvidia-(compute|cfg|decode|encode|extra|ml|nscq|gl|common)|libcuda1|"
    r"cuda-drivers|nvlink5|nvlsm)"
)
"""Packages that must change together with the loaded kernel module, by Debian's, Ubuntu's and NVIDIA's names."""

DRIVER_RPM = "nvidia-driver"
"""The name that a pattern must match to exclude the driver on RPM systems."""


def collect(names, step):
    step("apt")
    yield "apt", read.tried(_apt)
    step("dnf")
    yield "dnf", read.tried(_dnf)


# --- apt


def _apt():
    """Return whether unattended-upgrades may run, its exclusions, and the driver packages that it would change."""
    if not read.exists("/usr/bin/unattended-upgrade"):
        return read.absent("unattended-upgrades is not installed")
    settings = apt_settings(_apt_files())
    enabled = _last(settings, "APT::Periodic::Unattended-Upgrade", "0") not in ("0", "")
    reboot = _last(settings, "Unattended-Upgrade::Automatic-Reboot", "false").lower() in ("true", "1", "yes", "on")
    blacklist = settings.get("unattended-upgrade::package-blacklist", [])
    packages = driver_packages(read.text(DPKG_STATUS, DPKG_LONGEST)) if enabled and read.exists(DPKG_STATUS) else {}
    return read.value(
        {
            "enabled": enabled,
            "reboots": reboot,
            "blacklist": blacklist,
            "driver_packages": {name: _kept_by(name, held, blacklist) for name, held in packages.items()},
        }
    )


def _last(settings, name, default):
    return (settings.get(name.lower()) or [default])[-1]


def _apt_files():
    folder = APT_CONF + ".d"
    paths = [os.path.join(folder, name) for name in read.names_in(folder) if re.match(r"[\w.-]+$", name)]
    wanted = [path for path in paths if "." not in os.path.basename(path) or path.endswith(".conf")]
    return [read.text(path) for path in [*wanted, APT_CONF] if read.exists(path)]


def apt_settings(contents):
    """Return {lower-case setting name: [values in order]} of apt's nested configuration.

    There are three ways to write it: `A::B "x";`, `A { B "x"; }` and `A::B { "x"; "y"; }`; `#clear` empties a list.
    """
    settings, token = {}, re.compile(r'"((?:[^"\\]|\\.)*)"|([{};])|([^\s"{};]+)')
    for content in contents:
        scopes, words = [], []
        for quoted, sign, word in token.findall(_without_comments(content)):
            if sign == "{":
                scopes.append(words[0][1] if words else "")
            elif sign:
                _keep(settings, scopes, words)
                scopes = scopes[:-1] if sign == "}" else scopes
            words = [] if sign else words + [("text" if word == "" else "name", word or quoted)]
    return settings


def _without_comments(content):
    plain = re.sub(r"/\*.*?\*/", "", content, flags=re.S)
    return re.sub(r'^((?:[^"\n]|"[^"\n]*")*?)(?://.*|#(?!clear).*)$', r"\1", plain, flags=re.M)


def _keep(settings, scopes, words):
    """Add one statement: a name with its value, or a value alone in a list."""
    if words[:1] == [("name", "#clear")]:
        for _, name in words[1:]:
            settings.pop(name.lower(), None)
        return
    named = [words[0][1]] if words[:1] and words[0][0] == "name" else []
    name = "::".join(part.strip(":") for part in scopes + named).lower()
    settings.setdefault(name, []).extend(text for _, text in words[len(named) :])


def driver_packages(status):
    """Return {installed driver package: whether it is held} from dpkg's status file."""
    found = {}
    for block in re.split(r"\n\n+", status):
        head = re.match(r"Package: (\S+)\nStatus: (\S+) \S+ installed", block)
        if head and DRIVER_PACKAGES.match(head.group(1)):
            found[head.group(1)] = head.group(2) == "hold"
    return found


def _kept_by(name, held, blacklist):
    """Return what excludes the package from automatic updates: "hold", the pattern, or nothing."""
    if held:
        return "hold"
    for pattern in blacklist:
        try:
            if re.match(pattern, name):
                return pattern
        except re.error:
            continue  # unattended-upgrades cannot use it either
    return ""


# --- dnf


def _dnf():
    """Return whether dnf-automatic installs updates, and its exclusions."""
    path = "/etc/dnf/automatic.conf"
    if not read.exists(path):
        return read.absent("dnf-automatic is not installed")
    automatic, main = _ini(path), _ini("/etc/dnf/dnf.conf")
    enabled = automatic.get("commands", "apply_updates", fallback="no").strip().lower() in ("yes", "true", "1", "on")
    reboot = automatic.get("commands", "reboot", fallback="never").strip().lower()
    excludes = []
    for config, section in ((main, "main"), (automatic, "base")):
        for key in ("exclude", "excludepkgs"):
            excludes += re.split(r"[\s,]+", config.get(section, key, fallback="").strip())
    excludes = [each for each in excludes if each] + _locked()
    kept = next((each for each in excludes if fnmatch.fnmatchcase(DRIVER_RPM, each)), "")
    packaged = read.exists("/usr/bin/nvidia-smi") and not read.exists("/usr/bin/nvidia-uninstall")  # no .run installer
    return read.value(
        {
            "enabled": enabled,
            "reboots": reboot != "never",
            "excludes": excludes,
            "driver_packages": {DRIVER_RPM: kept} if packaged else {},
        }
    )


def _ini(path):
    config = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        config.read_string(read.text(path))
    except FileNotFoundError:
        pass
    except configparser.Error as problem:
        raise OSError(0, "not understood: {}".format(str(problem).splitlines()[0]), path)
    return config


def _locked():
    """Return names that dnf's versionlock locks: `nvidia-driver-3:550.54-1.el9.*` → nvidia-driver."""
    content = read.text_or("/etc/dnf/plugins/versionlock.list")
    return [
        re.sub(r"-(\d+:)?[^-]+-[^-]+$", "", line.strip())
        for line in content.splitlines()
        if line.strip()[:1] not in ("", "#", "!")
    ]
