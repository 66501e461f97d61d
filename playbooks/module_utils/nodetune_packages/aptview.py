"""Query apt for the host as it is, or as if repositories and pins were on it. Changes nothing."""

import contextlib
import fnmatch
import glob
import os
import re

from ansible.module_utils.nodetune_host import command
from ansible.module_utils.nodetune_host.problem import ChangeError

from .aptfiles import PINS, SOURCES, pin, repository_files
from .ownfiles import folder_apart
from .question import WRONG_ADDRESS, WRONG_KEY

LISTS = "/var/lib/apt/lists"
SECONDS_TO_ASK = 300
GENTLY = [
    *("-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20", "-o", "Acquire::Retries=1"),
    *("-o", "APT::Update::Error-Mode=any", "-o", "APT::Get::List-Cleanup=0"),
]
"""An unreachable mirror is an error here, and quickly; the lists of other repositories are kept."""


@contextlib.contextmanager
def view(question):
    """Yield apt's options for the host of the question, and those for only the site's repositories."""
    if question.repositories is None:
        yield [], []
        return
    with folder_apart() as folder:
        for part in (SOURCES, os.path.dirname(PINS), LISTS + "/partial", "/cache/archives/partial"):
            os.makedirs(folder + part, exist_ok=True)
        _link(SOURCES, folder, lambda name: not name.startswith("nodetune-"))
        _link(os.path.dirname(PINS), folder, lambda name: name != os.path.basename(PINS))
        _link(LISTS, folder, lambda name: name not in ("lock", "partial", "auxfiles"))
        site = repository_files(question.repositories, folder)
        _write("", site)
        options = _options(folder)
        only_site = [*options, *_only_site(folder, site)]
        _update(only_site, question.repositories)
        _write("", {f"{folder}{PINS}": _asked_pins(question, only_site)})
        if not _host_lists():
            run([*options, "update", "-q"], SECONDS_TO_ASK)
        yield options, only_site


def _write(folder, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(folder + path), exist_ok=True)
        with open(folder + path, "w", encoding="utf-8") as out:
            out.write(text)


def _link(source, folder, wanted):
    for name in os.listdir(source) if os.path.isdir(source) else []:
        if wanted(name):
            os.symlink(f"{source}/{name}", f"{folder}{source}/{name}")


def _asked_pins(question, only_site):
    """Return pins that take the driver family from the site, even if the host's own archive is newer."""
    pins = [pin(name, version) for name, version in sorted(question.versions.items())]
    if question.branch and question.family:
        for name, had in sorted(available(_family(question, only_site), only_site).items()):
            # above the branch's pin, which the host's own versions fit as well; of several, apt takes the first
            pins += [pin(name, version, 1002) for version in list(filter(question.fits_branch, had))[:1]]
        form = "-*" if question.branch.count(".") > 1 else ".*"
        pins.append(pin(" ".join(question.family), question.branch + form))
    return "\n".join(pins)


def _family(question, only_site):
    names = command.run(["apt-cache", *only_site, "pkgnames"], SECONDS_TO_ASK).split()
    return [name for name in names if any(fnmatch.fnmatch(name, each) for each in question.family)]


def available(names, options):
    """Return name → the available versions, newest first."""
    if not names:
        return {}
    status, out, err = command.attempt(["apt-cache", *options, "madison", *names], SECONDS_TO_ASK)
    if status and "E: " in err:
        raise ChangeError(why(out, err))
    found = {}
    for line in out.splitlines():
        name, version, where = (part.strip() for part in line.split("|", 2))
        if where.endswith("Packages") and version not in found.setdefault(name, []):
            found[name].append(version)
    return found


def _options(folder):
    """Write options that are read after the host's own: our folders, without the host's programs."""
    places = {
        "Dir::Etc::sourceparts": folder + SOURCES,
        "Dir::Etc::preferencesparts": folder + os.path.dirname(PINS),
        "Dir::State::lists": folder + LISTS,
        "Dir::Cache": folder + "/cache",
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",  # the folder is root's
    }
    invoked = [f"APT::Update::{when}-Invoke{success};" for when in ("Pre", "Post") for success in ("", "-Success")]
    lines = [*(f'{name} "{value}";\n' for name, value in places.items()), *(f"#clear {each}\n" for each in invoked)]
    _write(folder, {"/apt.conf": "".join(lines)})
    return ["-c", f"{folder}/apt.conf"]


def _only_site(folder, site):
    """Return the options that exclude the host's own repositories."""
    own = f"{folder}/site"
    os.mkdir(own)
    for path in site:
        if path.endswith(".sources"):
            os.symlink(path, f"{own}/{os.path.basename(path)}")
    return _sources_in(own)


def _sources_in(folder):
    return ["-o", f"Dir::Etc::sourceparts={folder}", "-o", "Dir::Etc::sourcelist=/dev/null"]


def refresh(repositories):
    """Fetch the lists of the site's repositories, and of the host's own if they have none."""
    with folder_apart() as folder:
        files = repository_files(repositories)
        _write(folder, {path: text for path, text in files.items() if path.startswith(SOURCES)})
        _update(_sources_in(folder + SOURCES), repositories)
    if not _host_lists():
        run(["update", "-q"], SECONDS_TO_ASK)


def _host_lists(folder=LISTS):
    return [path for path in glob.glob(f"{folder}/*") if os.path.isfile(path) and not path.endswith("/lock")]


def _update(options, repositories):
    status, _, err = attempt([*options, *GENTLY, "update", "-q"], SECONDS_TO_ASK)
    told = [line for line in err.splitlines() if re.match(r"[EW]: (?!Target )", line)]
    if status or any(re.search(r"GPG error|Failed to fetch|not signed", line) for line in told):
        raise ChangeError(_unreachable(told, repositories))


def _unreachable(told, repositories):
    text = next((line[3:] for line in told if re.search(r"GPG|Failed to fetch|sign|Conflicting", line)), "")
    text = text or next((line[3:] for line in told), "apt-get update failed without a message")
    name = next((each["name"] for each in repositories if each["apt"]["uris"].rstrip("/") in text), "")
    what = f"repository {name}: " if name else ""
    if "Conflicting values set for option Signed-By" in text:
        advice = "the host already has it in another file: remove that file from /etc/apt/sources.list.d"
    elif re.search(r"NO_PUBKEY|GPG|not signed|EXPKEYSIG|key", text):
        advice = WRONG_KEY
    else:
        advice = WRONG_ADDRESS
    return f"{what}{text.strip().rstrip('.')}: {advice}"


def attempt(words, seconds):
    # needrestart would ask, or restart services under running jobs
    settings = ["DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1"]
    return command.attempt(["env", *settings, "apt-get", *words], seconds)


def run(words, seconds):
    status, out, err = attempt(words, seconds)
    if status:
        raise ChangeError(why(out, err))
    return out


def why(out, err):
    """Return apt's reason as one line."""
    text = out + "\n" + err
    broken = re.search(r"dpkg: error processing (?:package|archive) (\S+) .*\n\s*(.+)", text)
    if broken:
        told = f"{broken.group(1)}: {broken.group(2).strip()}"
        return f"{told}: see /var/log/apt/term.log there; run this again to continue"
    unmet = re.search(r"unmet dependencies:\n((?: .*\n)+)", text)
    if unmet:
        lines = " ".join(unmet.group(1).split())
        return f"these packages cannot be installed together: {lines[:400]}"
    told = [line[3:] for line in err.splitlines() if line.startswith("E: ")]
    if any("Conflicting values set for option Signed-By" in line for line in told):
        return _unreachable([f"E: {line}" for line in told], [])
    return f"apt-get failed: {(told or [command.last_line(text) or 'no message'])[0]}"
