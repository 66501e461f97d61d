"""The files of a provision for dnf: the site's repositories and pins."""

from .ownfiles import of_repositories

SOURCES = "/etc/yum.repos.d"
KEYS = "/etc/pki/rpm-gpg"
PINS = "/etc/dnf/plugins/versionlock.list"
BEGIN = "# begin: nodetune provision holds these versions; to take it back, remove the lines up to its end"
END = "# end: nodetune provision"
OURS = "nodetune-"
"""The prefix of the names of the site's repositories."""


def repository_files(repositories, root=""):
    """Return path → text of the files that add the site's repositories to dnf.

    module_hotfixes: the lock decides the version of a package, not the stream of a module (RHEL 10 has none any more).
    """
    source, key = f"{root}{SOURCES}/{OURS}{{}}.repo", f"{root}{KEYS}/nodetune-{{}}.asc"
    return of_repositories(repositories, "dnf", source, key, _lines)


def _lines(name, dnf, key):
    lines = [f"[{OURS}{name}]", f"name={name} (nodetune provision)", f"baseurl={dnf['baseurl']}"]
    lines += ["enabled=1", "module_hotfixes=1", f"gpgcheck={int(bool(key))}"]
    return lines + ([f"gpgkey=file://{key}"] if key else [])


def pin_files(versions):
    """Return path → text of our lines in the list of dnf's versionlock plugin, part of a file that others own."""
    lines = [f"{name}-{version if ':' in version else '0:' + version}.*" for name, version in sorted(versions.items())]
    text = _others(read(PINS)) + ("\n".join([BEGIN, *lines, END]) + "\n" if lines else "")
    return {PINS: text or None}


def read(path):
    try:
        with open(path, encoding="utf-8") as source:
            return source.read()
    except OSError:
        return ""


def _others(text):
    """Return a versionlock list without our part of it."""
    head, begin, rest = text.partition(BEGIN + "\n")
    return head + rest.partition(END + "\n")[2] if begin else text
