"""One of nodetune's programs in its own folder: {"path", "archive", "pythons": [full paths, best first]}.

No pythons: remove it, with the folders from it up to "folder" that are then empty.

The archive (a zip file with a member MANIFEST: a line `sha256  name` for each other member) was copied to the host
before; the part after the last dash of the folder's name is the beginning of the manifest's own SHA-256. The folder
contains the members, their compiled forms, and a link `python` to the interpreter that runs them. State: {"python": the
interpreter, null without a folder, "" if it is incomplete and must be made again}; without a folder also "folder": the
topmost missing folder.
"""

import hashlib
import os
import re
import shutil
import zipfile

from .. import atomic_file, command
from ..problem import ChangeError, why
from . import file

MANIFEST = "MANIFEST"
LINK = "python"
OLDEST = (3, 9)
MIN_DIGEST = 16
NAME = re.compile(r"[A-Za-z_][\w/]*\.(py|json)\Z", re.ASCII)
ASK = "import sys; print('%d.%d' % sys.version_info[:2])"
COMPILE = "import compileall, sys; sys.exit(not compileall.compile_dir(sys.argv[1], quiet=2, ddir=sys.argv[2]))"
SECONDS = 120

place = file.place


def label(change):
    return change["path"]


def read(change):
    path = change["path"]
    if not os.path.lexists(path):
        return {"python": None, "folder": file.read({"path": os.path.join(path, MANIFEST)})["folder"]}
    link = os.path.join(path, LINK)
    usable = _whole(path) and os.path.islink(link) and _compiled(path, os.readlink(link))
    return {"python": os.readlink(link) if usable else ""}


def wanted(change, now):
    """Return the complete program, for the best interpreter here. Raise ChangeError if none is new enough."""
    if not change["pythons"]:
        return now if now["python"] is None else {"python": None, "folder": change.get("folder")}
    return {"python": usable(change["pythons"])}


def usable(pythons):
    """Return the first of these interpreters that is new enough. Raise ChangeError."""
    tried = []
    for python in pythons:
        version = _version(python)
        if version >= OLDEST:
            return python
        tried.append(f"{python} ({'.'.join(map(str, version)) or 'not there'})")
    least = ".".join(map(str, OLDEST))
    raise ChangeError(
        f"the guard needs Python {least} or newer: {', '.join(tried)}: install one, or give its path with --python"
    )


def same(one, other):
    return one["python"] == other["python"]


def show(change, state):
    if state["python"] is None:
        return ""
    return f"{os.path.basename(change['path'])}, {state['python'] or 'damaged'}\n"


def put(change, state):
    """Install or remove the program. Raise ChangeError if the archive is missing or different."""
    path = change["path"]
    try:
        if not state["python"]:
            _remove(path, state.get("folder"))
        else:
            _make(change, state["python"])
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ChangeError(why(error)) from None


def _make(change, python):
    """Unpack next to the target, then rename, so that it appears complete."""
    path = change["path"]
    part, made = atomic_file.part_of(path), atomic_file.missing_folder(path)
    shutil.rmtree(part, ignore_errors=True)
    before = os.umask(0o022)  # jobs' users run parts of it
    try:
        _unpack(change, part)
        os.symlink(python, os.path.join(part, LINK))
        command.run([python, "-I", "-S", "-c", COMPILE, part, path], SECONDS)
        _sync(part)
        shutil.rmtree(path, ignore_errors=True)
        os.rename(part, path)
        atomic_file.sync_folder(os.path.dirname(path))
    finally:
        os.umask(before)
        shutil.rmtree(part, ignore_errors=True)
        atomic_file.remove_empty_folders(os.path.dirname(path), made)


def _unpack(change, part):
    with zipfile.ZipFile(change["archive"]) as archive:
        text = archive.read(MANIFEST)
        if not _meant(change["path"], text):
            raise ValueError(f"{change['archive']} is not the expected program: install again")
        atomic_file.replace(os.path.join(part, MANIFEST), text, 0o644)
        for name, digest in _listed(text).items():
            content = archive.read(name)
            if hashlib.sha256(content).hexdigest() != digest:
                raise ValueError(f"{name} in {change['archive']} is damaged: install again")
            os.makedirs(os.path.dirname(os.path.join(part, name)), exist_ok=True)
            with open(os.path.join(part, name), "wb") as opened:
                opened.write(content)


def _sync(folder):
    """Sync a folder to disk. The first sync includes the rest, so hundreds of files cost little more than one."""
    for place, _, names in os.walk(folder):
        for name in names:
            if not os.path.islink(os.path.join(place, name)):
                with open(os.path.join(place, name), "rb") as opened:
                    os.fsync(opened.fileno())
        atomic_file.sync_folder(place)


def _meant(path, manifest):
    digest = path.rpartition("-")[2]
    return len(digest) >= MIN_DIGEST and hashlib.sha256(manifest).hexdigest().startswith(digest)


def _whole(path):
    """Return whether every file matches the manifest, and the manifest is the expected one."""
    try:
        text = _content(os.path.join(path, MANIFEST))
        files = {name: _content(os.path.join(path, name)) for name in _listed(text)}
    except (OSError, ValueError):
        return False
    listed = _listed(text)
    return _meant(path, text) and all(hashlib.sha256(files[name]).hexdigest() == listed[name] for name in files)


def _listed(text):
    """Return {name: digest}. Raise ValueError for a name that would leave the folder."""
    found = {}
    for line in text.decode("ascii").splitlines():
        digest, _, name = line.partition("  ")
        if not NAME.match(name):
            raise ValueError(f"the manifest names {name!r}: install again")
        found[name] = digest
    return found


def _compiled(path, python):
    """Return whether its compiled form exists: without it, each run would take a second longer."""
    tag = "cpython-{}{}.pyc".format(*(_version(python) or (0, 0)))
    return os.path.exists(os.path.join(path, "nodetune", "__pycache__", "__init__." + tag))


def _version(python):
    """Return (3, 11), or () if it is missing or does not run."""
    if not os.access(python, os.X_OK):
        return ()
    try:
        return tuple(map(int, command.run([python, "-I", "-S", "-c", ASK], 20).strip().split(".")))
    except (ChangeError, ValueError):
        return ()


def _content(path):
    with open(path, "rb") as opened:
        return opened.read()


def _remove(path, made):
    """Rename, so that it disappears at once; then remove folders up to `made` that nobody else uses."""
    if os.path.lexists(path):
        aside = atomic_file.part_of(path)
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(path, aside)
        shutil.rmtree(aside)
    atomic_file.remove_empty_folders(os.path.dirname(path), made)
