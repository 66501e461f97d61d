"""All sources of a node's NCCL settings: `nccl.*`.

Each source has its own syntax, and its reader decides what a line means: for NCCL, everything before the first `=`
is the name, with blanks; a shell needs an export; pam_env strips quotes. Raw lines are kept because they show
the faults. Values of secrets are not collected.
"""

import errno
import fnmatch
import os
import re
import stat

from . import read
from .nccl_syntax import environment, nccl_conf, pam_env, shell, systemd

CONF = "/etc/nccl.conf"
ROOT_CONF = "/root/.nccl.conf"
SLURM_CONFS = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf")
UNITS = ("slurmd", "containerd", "docker", "kubelet", "crio")
LIBRARY_FOLDERS = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/usr/local/lib64",
)
PLUGIN_FOLDERS = (
    "/opt/amazon/ofi-nccl/lib",
    "/opt/amazon/ofi-nccl/lib64",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
    "/opt/aws-ofi-nccl/lib",
    "/opt/hpcx/nccl_rdma_sharp_plugin/lib",
)
PLUGINS = ("libnccl-net.so", "libnccl-net-ofi.so", "libnccl-net-aws-ofi.so")
SECRETS = ("NCCL_PSK",)
HIDDEN = "(hidden)"
MAX_RAW = 5000
MAX_FILES = 1000


def collect(names, step):
    settings, problems = [], []
    for source in (_conf_files, _login_files, _systemd_files, _slurm_files, _container_files):
        step("settings in " + source.__name__.strip("_").replace("_", " "))
        found, failed = source()
        settings.extend(found)
        problems.extend(failed)
    extra, failed = _named_conf_files(settings)
    settings.extend(extra)
    problems.extend(failed)
    node_wide = [text for path, text in problems if path != ROOT_CONF]
    yield "settings", read.unread(node_wide[0]) if node_wide else read.value(settings[:MAX_FILES])
    step("modes of those files")
    yield "files", read.each(_files(settings, dict(problems)))
    step("libraries")
    yield "libraries", read.value(_libraries())
    yield "plugins", read.value(_plugins())
    step("topology files")
    yield "topo_file", read.value(_topology_files(settings))


# -- files ---------------------------------------------------------------------------------------------------------------


def _parsed(paths, scope, parse):
    """Return the settings in existing files, and (path, reason) for unreadable files."""
    found, failed = [], []
    for path in paths:
        try:
            content = read.raw(path)  # blanks and line ends at its borders are what is looked for
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            if problem.errno != errno.EINVAL:  # a folder, a pipe or /dev/null sets nothing
                failed.append((path, "{}: {}".format(path, read.why(problem))))
            continue
        for name, value, line, raw in parse(content):
            secret = name.strip() in SECRETS
            found.append(
                {
                    "name": name,
                    "value": HIDDEN if secret and value else value,
                    "file": path,
                    "line": line,
                    "raw": "{}={}".format(name, HIDDEN) if secret else raw[:MAX_RAW],
                    "scope": scope,
                }
            )
    return found, failed


def _joined(parts):
    """Join several (found, failed) into one."""
    parts = list(parts)
    return [one for found, _ in parts for one in found], [one for _, failed in parts for one in failed]


def _in_folder(folder, pattern):
    try:
        return [os.path.join(folder, name) for name in read.names_in(folder) if fnmatch.fnmatch(name, pattern)]
    except OSError:
        return []


# -- where settings are read from ------------------------------------------------------------------------------------------


def _conf_files():
    return _joined([_parsed([ROOT_CONF], "home", nccl_conf), _parsed([CONF], "nccl.conf", nccl_conf)])


def _named_conf_files(settings):
    """Return the files that NCCL_CONF_FILE names: they replace ~/.nccl.conf."""
    paths = {each["value"] for each in settings if each["name"] == "NCCL_CONF_FILE" and each["scope"] != "nccl.conf"}
    literal = sorted(path for path in paths if path and path.startswith("/") and path not in (CONF, ROOT_CONF))
    return _parsed(literal[:4], "home", nccl_conf)


def _login_files():
    shells = ["/etc/profile", *_in_folder("/etc/profile.d", "*.sh"), "/etc/bash.bashrc", "/etc/bashrc"]
    return _joined(
        [
            _parsed(["/etc/security/pam_env.conf"], "pam_env", pam_env),
            _parsed(["/etc/environment"], "environment", environment),
            _parsed(shells, "profile", shell),
        ]
    )


def _systemd_files():
    manager = read.with_drop_ins(read.config_folders("systemd"), "system.conf")
    parts = [_parsed(manager, "systemd", lambda content: systemd(content, "DefaultEnvironment"))]
    for unit in UNITS:
        files = read.with_drop_ins(read.UNIT_FOLDERS, unit + ".service")
        if files and files[0].endswith(".service"):  # drop-ins alone are no unit
            parts.append(_parsed(files, "service " + unit, lambda content: systemd(content, "Environment")))
            parts.append(_parsed(_environment_files(files), "service " + unit, environment))
    return _joined(parts)


def _environment_files(units):
    """Return the absolute paths that EnvironmentFile= names, without patterns and specifiers."""
    content = "\n".join(read.text_or(path) for path in units)
    paths = re.findall(r"^\s*EnvironmentFile\s*=\s*-?(/[^\s*?%\[]+)\s*$", content, re.MULTILINE)
    return sorted(set(paths))


def _slurm_files():
    for path in SLURM_CONFS:
        prologs = re.findall(r"^\s*TaskProlog\s*=\s*(\S+)", read.text_or(path), re.MULTILINE | re.IGNORECASE)
        if prologs:
            patterns = prologs[-1].strip("\"'").split(",")
            files = [file for one in patterns for file in _in_folder(os.path.dirname(one), os.path.basename(one))]
            return _parsed(files, "task prolog", shell)
    return [], []


def _container_files():
    return _parsed(_in_folder("/etc/enroot/environ.d", "*.env"), "container", environment)


# -- what lies about them ----------------------------------------------------------------------------------------------------


def _files(settings, failed):
    """Return owner and mode of each file with settings, and always of the conf files."""
    facts = {}
    for path in sorted({CONF, ROOT_CONF} | {each["file"] for each in settings} | set(failed)):
        try:
            found = os.stat(read.ROOT + path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            facts[path] = read.unread("{}: {}".format(path, read.why(problem)))
            continue
        mode = stat.S_IMODE(found.st_mode)
        facts[path] = read.value(
            {
                "mode": "{:04o}".format(mode),
                "uid": found.st_uid,
                "gid": found.st_gid,
                "world_writable": bool(mode & stat.S_IWOTH),
                "world_readable": bool(mode & stat.S_IROTH),
            }
        )
    return facts


def _cuda_folders():
    kits = _in_folder("/usr/local", "cuda*") + _in_folder("/usr/local", "nccl*")
    return [os.path.join(kit, lib) for kit in kits for lib in ("lib64", "lib")]


def _libraries():
    """Return each NCCL that the host's loader can find; the version is in the file name behind libnccl.so.2."""
    seen = {}
    for folder in LIBRARY_FOLDERS + tuple(_cuda_folders()):
        path = os.path.join(folder, "libnccl.so.2")
        if read.exists(path):
            real = read.real(path)
            version = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)$", real)
            seen.setdefault(real, {"path": path, "version": version.group(1) if version else None})
    return sorted(seen.values(), key=lambda each: each["path"])


def _plugins():
    folders = LIBRARY_FOLDERS + PLUGIN_FOLDERS
    paths = [os.path.join(folder, name) for folder in folders for name in PLUGINS]
    return sorted({read.real(path) for path in paths if read.exists(path)})


def _topology_files(settings):
    """Return the files that NCCL_TOPO_FILE and NCCL_GRAPH_FILE name, and whether every user can read them."""
    found = {}
    for each in settings:
        path = each["value"] or ""
        if each["name"] not in ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE") or not path.startswith("/") or "$" in path:
            continue
        try:
            mode = os.stat(read.ROOT + path).st_mode
            found[path] = {"exists": True, "world_readable": bool(mode & stat.S_IROTH)}
        except (FileNotFoundError, NotADirectoryError):
            found[path] = {"exists": False, "world_readable": False}
        except OSError as problem:
            found[path] = {"exists": None, "world_readable": None, "why": read.why(problem)}
    return found
