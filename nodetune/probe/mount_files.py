"""Mount points in fstab and the automounter's maps."""

import os
import re
import stat

from . import read

FSTAB = "/etc/fstab"
MASTERS = ("/etc/auto.master", "/etc/auto.master.d")
MAX_MAPS = 64
MAX_LINES = 4096


def configured(places):
    """Return {mount point: place of its options} for mounts from a file. Raise OSError.

    Each is {"file", "line", "key", "options"}; `key` is the entry's name in a map, None in fstab.
    """
    found = {}
    for _, words, line in _entries(FSTAB):
        if len(words) > 2 and _bare(unescaped(words[1])) in places:
            options = words[3].split(",") if len(words) > 3 else []
            found[_bare(unescaped(words[1]))] = _placed(FSTAB, line, None, options)
    below = {}
    for place in places:
        below.setdefault(os.path.dirname(place), []).append(place)
    for point, path in _maps():
        for key, words, line in _entries(path):
            options = words[1][1:].split(",") if len(words) > 2 and words[1].startswith("-") else []
            for place in _named(point, key, places, below):
                found.setdefault(place, _placed(path, line, key, options))
    return found


def unescaped(text):
    """Decode the octal escapes for blanks and backslashes in fstab and mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda sign: chr(int(sign.group(1), 8)), text)


def _placed(path, line, key, options):
    return {"file": path, "line": line, "key": key, "options": options}


def _bare(path):
    return path.rstrip("/") or "/"


def _entries(path):
    """Return (first word, words, line number) of the lines that are neither comments nor continued."""
    found = []
    for number, text in read.numbered_lines(path)[:MAX_LINES]:
        words = text.split()
        if words and not words[0].startswith("#") and not text.endswith("\\"):
            found.append((words[0], words, number))
    return found


def _maps():
    """Return (mount point, map file) of the automounter's master files, without programs."""
    master, folder = MASTERS
    masters = [master, *(os.path.join(folder, name) for name in read.names_in(folder) if name.endswith(".autofs"))]
    found = []
    for path in masters[:MAX_MAPS]:
        for point, words, _ in _entries(path):
            file = words[1][5:] if len(words) > 1 and words[1].startswith("file:") else (words + [""])[1]
            if point.startswith("/") and file.startswith("/") and _is_text(file):
                found.append((point, file))
    return found[:MAX_MAPS]


def _is_text(path):
    """Return whether a map is a text file: the automounter runs an executable map."""
    try:
        return not os.stat(read.ROOT + path).st_mode & stat.S_IXUSR
    except OSError:
        return False


def _named(point, key, places, below):
    """Return the mount points of a map entry; `below` has those of each folder."""
    if key == "*" and point != "/-":
        return below.pop(_bare(point), [])
    place = _bare(key) if point == "/-" else os.path.join(_bare(point), key)
    return [place] if place in places else []
