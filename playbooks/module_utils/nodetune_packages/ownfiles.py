"""Files that a provision owns on a host: written completely, and only if they differ."""

import contextlib
import glob
import os
import shutil
import tempfile

from ansible.module_utils.nodetune_host import atomic_file
from ansible.module_utils.nodetune_host.problem import ChangeError, why

HEADER = (
    "# Written by nodetune provision, which owns this file: the next run writes it anew, other lines are lost.\n"
    "# To take it back: remove this file{}\n"
)


def of_repositories(repositories, manager, source, key, lines_of):
    """Return path → text of the files that add the site's repositories; `lines_of` returns the lines of one.

    `source` and `key` are the paths of a repository's files, with {} for its name.
    """
    files = {}
    for each in repositories:
        key_text, key_path = each[manager].get("key_text"), key.format(each["name"])
        lines = lines_of(each["name"], each[manager], key_path if key_text else "")
        files[source.format(each["name"])] = HEADER.format("") + "\n".join(lines) + "\n"
        if key_text:
            files[key_path] = key_text.strip() + "\n"
    return files


def lying(folders):
    """Return paths of files of this or earlier provisions in these folders."""
    return [path for folder in folders for path in glob.glob(f"{folder}/nodetune-*")]


@contextlib.contextmanager
def folder_apart():
    """Make a folder that the package manager can read, for a query that leaves the host as it is."""
    folder = tempfile.mkdtemp(prefix="nodetune-packages-")
    try:
        os.chmod(folder, 0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put(files, check):
    """Write path → text (None: no such file) unless `check`; returns Ansible's diffs. Raise ChangeError."""
    diffs = []
    for path, text in sorted(files.items()):
        before = _read(path)
        if before != text:
            diffs.append({"before_header": path, "after_header": path, "before": before or "", "after": text or ""})
            if not check:
                _write(path, text)
    return diffs


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ChangeError(f"{path} cannot be read: {why(error)}") from None


def _write(path, text):
    try:
        if text is None:
            os.unlink(path)
        else:
            atomic_file.replace(path, text.encode("utf-8"), 0o644)
    except OSError as error:
        raise ChangeError(f"{path} cannot be written: {why(error)}") from None
