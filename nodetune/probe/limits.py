"""Resource limits at all their sources, and shared memory: `limits.*`.

`limits.ITEM` (memlock, nofile, stack, nproc, rtprio, core) has one subject for each source: "login sessions" (PAM over
what sshd passes on), "login sessions of @GROUP" (or of a user, where a line gives them less than everyone), and each running
daemon that starts work. Values as in the kernel, or "unlimited".
"""

import fnmatch
import os
import re

from nodetune.onhost import host_root
from . import limit_files, processes, read, services

PROC_NAMES = {
    "memlock": "Max locked memory",
    "nofile": "Max open files",
    "stack": "Max stack size",
    "nproc": "Max processes",
    "rtprio": "Max realtime priority",
    "core": "Max core file size",
}
IN_KIB = ("memlock", "stack", "core")
PAM_UNLIMITED = ("unlimited", "infinity", "-1")
LAUNCHERS = ("slurmd", "containerd", "dockerd", "crio", "kubelet", "sshd")
ORDINARY_UID = 1000
"""The lowest UID of people on the distributions of GPU hosts."""
GROUP_OF_USERS = 100
MAX_NAMED = 32
"""Groups and users with lines of their own."""


def collect(names, step):
    step("limits of running daemons")
    running = _running()
    step("/etc/security")
    pam = read.tried(_pam)
    for item in PROC_NAMES:
        yield item, _item(item, running, pam)
    step("/dev/shm")
    yield "shm", _shm()


def _running():
    """Return {daemon: {item: fact}} of the running launchers; unread if their processes are hidden."""
    try:
        found = processes.running()
    except OSError:
        return read.unread(read.lacks("/proc hides other users' processes"))
    daemons = {name: processes.daemon(found[name]) for name in LAUNCHERS if name in found}
    return {name: read.tried(process_limits, pid) for name, pid in daemons.items()}


def process_limits(pid):
    """Return {item: {"soft", "hard", "source"}} of one process. Raise OSError if it cannot be read."""
    content, found = read.text("/proc/{}/limits".format(pid)), {}
    for item, title in PROC_NAMES.items():
        row = re.search("^" + title + r"\s+(\S+)\s+(\S+)", content, re.M)
        if row:
            found[item] = {
                "soft": services.limit(row.group(1)),
                "hard": services.limit(row.group(2)),
                "source": "process {}".format(pid),
            }
    return found


def _item(item, running, pam):
    if "unread" in running:
        return running
    subjects = {
        name: known if "unread" in known else read.value(_with_file(name, item, known[item]))
        for name, known in running.items()
        if name != "sshd" and ("unread" in known or item in known)
    }
    everyone = subjects["login sessions"] = _login(item, running.get("sshd", {}), pam)
    for whose, lines in pam.get("named", {}).items():
        one = _login(item, running.get("sshd", {}), lines) if item in lines else everyone
        if "value" in one and "value" in everyone and _less(one["value"], everyone["value"]):
            subjects["login sessions of " + whose] = one
    return read.each(subjects)


def _less(one, other):
    return any(_size(one[side]) < _size(other[side]) for side in ("soft", "hard"))


def _with_file(daemon, item, limit):
    """Return the limit with the file that sets it in `source`, if known."""
    file = limit_files.source(daemon, item, limit)
    return dict(limit, source=", ".join(filter(None, (limit["source"], file))))


def _login(item, sshd, pam):
    """Return the limit of an ordinary user's session: PAM's lines over the limits that sshd passes on.

    `in_the_way` says why a line for everyone in limits.d would have no effect.
    """
    if "unread" in pam:
        return pam
    inherited = sshd.get(item)
    lines = pam.get(item, {})
    soft, hard = lines.get("soft"), lines.get("hard")
    if not (inherited or (soft and hard)):
        return read.absent("no limits.conf line sets it and no sshd runs to inherit from")
    allowed = hard["value"] if hard else inherited["hard"]
    wanted = soft["value"] if soft else inherited["soft"]
    capped = _size(allowed) < _size(wanted)
    line = (hard if capped else soft) or (None if capped else hard)
    result = {"soft": allowed if capped else wanted, "hard": allowed, "source": _origin(item, inherited, line)}
    first = max((side for side in (soft, hard) if side), key=lambda side: side["rank"], default=None)
    if "off" in pam:
        result["in_the_way"] = pam["off"]
    elif first and first["rank"]:
        result["in_the_way"] = "{file} line {line} is for {domain} and beats lines for everyone".format(**first)
    return read.value(result)


def _origin(item, inherited, line):
    if line:
        return "{file} line {line}".format(**line)
    file = limit_files.source("sshd", item, inherited)
    return "inherited from sshd" + (": " + file if file else "")


def _size(limit):
    return float("inf") if limit == "unlimited" else limit


# --- PAM


def _pam():
    """Return {item: {"soft"/"hard": {"value", "file", "line"}}} that pam_limits sets for an ordinary user."""
    if _sshd_setting("/etc/ssh/sshd_config", "usepam") == "no":
        return {"off": "sshd_config says UsePAM no"}
    if not _uses_pam_limits("/etc/pam.d/sshd"):
        return {"off": "/etc/pam.d/sshd does not run pam_limits for sessions"}
    lines = _pam_lines()
    named = sorted({fields[0] for _, _, fields in lines if _of_people(fields[0])})[:MAX_NAMED]
    return dict(pam_winners(lines), named={whose: pam_winners(lines, whose) for whose in named})


def _of_people(domain):
    """Return whether a line is for one group or one user of people. Groups may be in a directory, not in the file."""
    if not re.match(r"@?[A-Za-z_][\w.-]*$", domain):
        return False
    group = domain.startswith("@")
    entry = "^{}:[^:]*:(\\d+):".format(re.escape(domain.lstrip("@")))
    found = re.search(entry, read.text_or("/etc/group" if group else "/etc/passwd"), re.M)
    number = int(found.group(1)) if found else ORDINARY_UID if group else 0
    return number >= ORDINARY_UID or (group and number == GROUP_OF_USERS)


def _sshd_setting(path, key, depth=4):
    """Return a setting of sshd_config for everyone in lower case: the first line wins. None if none can be read."""
    for line in read.text_or(path).splitlines():
        words = line.replace("=", " ").replace('"', "").lower().split() or [""]
        if words[0] == "match":
            return None
        if words[0] == key and len(words) > 1:
            return words[1]
        included = line.split()[1:] if words[0] == "include" and depth else ()
        for each in (file for pattern in included for file in _matching(pattern)):
            found = _sshd_setting(each, key, depth - 1)
            if found:
                return found
    return None


def _matching(pattern):
    folder, name = os.path.split(os.path.join("/etc/ssh", pattern))
    try:
        return [os.path.join(folder, each) for each in read.names_in(folder) if fnmatch.fnmatchcase(each, name)]
    except OSError:
        return []


def _uses_pam_limits(path, depth=4):
    """Return whether the PAM configuration, with what it includes, runs pam_limits for a session."""
    try:
        content = read.text(path)
    except FileNotFoundError:
        return False
    lines = [line for line in content.splitlines() if not line.lstrip().startswith("#")]
    if any(re.match(r"\s*-?session\s.*\bpam_limits\.so", line) for line in lines):
        return True
    included = re.findall(r"^\s*(?:@include|session\s+(?:include|substack))\s+(\S+)", "\n".join(lines), re.M)
    return depth > 0 and any(
        _uses_pam_limits(os.path.join("/etc/pam.d", os.path.basename(name)), depth - 1) for name in included
    )


def _pam_lines():
    """Return (file, line number, fields) of limits.conf and then limits.d in the order of the C locale."""
    folder = "/etc/security/limits.d"
    paths = ["/etc/security/limits.conf"] + [
        os.path.join(folder, name) for name in read.names_in(folder) if name.endswith(".conf")
    ]
    found = []
    for path in paths:
        if read.exists(path):
            for number, line in enumerate(read.text(path).splitlines(), 1):
                fields = line.partition("#")[0].split()
                if len(fields) == 4:
                    found.append((path, number, fields))
    return found


def pam_winners(lines, whose=""):
    """Return the lines that win for an ordinary user, of a group or by name (`whose`).

    A user or a range with all ordinary users beats a group, and that beats `*`; then the last wins.
    """
    winners = {}
    for path, number, (domain, kind, item, text) in lines:
        rank = _rank(domain, whose)
        setting = _setting(item, text)
        if rank is None or setting is None:
            continue
        for side in {"-": ("soft", "hard"), "soft": ("soft",), "hard": ("hard",)}.get(kind, ()):
            known = winners.setdefault(item, {})
            if side not in known or known[side]["rank"] <= rank:
                known[side] = {"value": setting, "file": path, "line": number, "rank": rank, "domain": domain}
    return winners


def _rank(domain, whose):
    """Return how specific a line is to an ordinary user, or None if it is about others."""
    if domain == "*":
        return 0
    if domain == whose:
        return 1 if whose.startswith("@") else 2
    least = re.match(r"(\d+):$", domain)
    return 2 if least and int(least.group(1)) <= ORDINARY_UID else None


def _setting(item, text):
    if item not in PROC_NAMES:
        return None
    if text in PAM_UNLIMITED:
        return _most(item)
    if not text.isdigit():
        return None
    return int(text) * 1024 if item in IN_KIB else int(text)


def _most(item):
    """Return PAM's "unlimited": for open files the kernel's own ceiling, as pam_limits does."""
    ceiling = read.text_or("/proc/sys/fs/nr_open") if item == "nofile" else ""
    return int(ceiling) if ceiling.isdigit() else "unlimited"


# --- shared memory


def _shm():
    """Return the tmpfs at /dev/shm: {"size_bytes", "free_bytes", "options"}. A memory file system cannot hang."""
    rows = [line.split() for line in read.text_or(host_root.PROCESS + "/mounts").splitlines()]
    mounted = [row for row in rows if row[1:2] == ["/dev/shm"]]
    if not mounted:
        return read.absent("nothing is mounted at /dev/shm")
    if mounted[-1][2] != "tmpfs":
        return read.unread("/dev/shm is {}, not tmpfs".format(mounted[-1][2]))
    space = os.statvfs(read.ROOT + "/dev/shm")
    return read.value(
        {
            "size_bytes": space.f_blocks * space.f_frsize,
            "free_bytes": space.f_bavail * space.f_frsize,
            "options": mounted[-1][3].split(","),
        }
    )
