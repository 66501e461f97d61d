"""A tuned profile and its activation: {"path": /…/NAME/tuned.conf, "content", "mode", "includes": names, "or"}.

State: {"file": as of `file`, "active": the names of the active profiles, "mode": manual, auto or ""}. tuned undoes a
profile before it applies the next: so a rollback restores it before the values of its run, and its file after that.
"""

import os

from .. import atomic_file, command
from ..problem import ChangeError, why
from . import file

ACTIVE = "/etc/tuned/active_profile"
MODE = "/etc/tuned/profile_mode"
PID = "/run/tuned/tuned.pid"
SECONDS = 300

place = file.place


def label(change):
    return change["path"]


def read(change):
    return {"file": file.read(change), "active": " ".join(_text(ACTIVE).split()), "mode": _text(MODE).strip()}


def wanted(change, now):
    """Return the state with the profile. Raise ChangeError unless the active profile is that of the plan."""
    name = _name(change)
    if now["active"] not in (name, change["includes"]):
        raise ChangeError(
            f"tuned's active profile is now {now['active'] or 'none'}, but the plan was made for {change['includes']}: plan again"
        )
    return {"file": file.wanted(change, now["file"]), "active": name, "mode": "manual"}


def same(one, other):
    """Compare; tuned before 2.8 has no mode."""
    modes = {one["mode"] or "manual", other["mode"] or "manual"}
    return file.same(one["file"], other["file"]) and one["active"] == other["active"] and len(modes) == 1


def show(change, state):
    text = f"# active profile: {state['active']} ({state['mode'] or 'manual'})\n"
    return text + file.show(change, state["file"])


def put(change, state):
    """Write the file, let tuned apply the profile, and then remove a file that is no longer wanted."""
    before = file.read(change)
    stays = state["file"]["content"] is not None
    if stays:
        file.put(change, state["file"])
    try:
        _activate(state)
    except ChangeError:
        if stays and _text(ACTIVE).split() != [_name(change)]:
            file.put(change, before)
        raise
    if not stays:
        file.put(change, state["file"])


def _name(change):
    return os.path.basename(os.path.dirname(change["path"]))


def _activate(state):
    """Make the profiles active. If tuned does not run, only write their names: do not start it."""
    if not _runs():
        _write(ACTIVE, state["active"])
        _write(MODE, state["mode"] or "manual")
        return
    asked = ["auto_profile"] if state["mode"] == "auto" else ["profile"] + state["active"].split()
    command.run(["tuned-adm"] + asked, SECONDS)
    told = command.attempt(["tuned-adm", "active"])[1]
    if "Current active profile: " + state["active"] not in told:
        raise ChangeError(f"tuned-adm active: {command.last_line(told) or 'no answer'}")


def _runs():
    """Return whether tuned runs, by its PID file."""
    pid = _text(PID).strip()
    words = _text(f"/proc/{pid}/cmdline").split("\0") if pid.isdigit() else []
    return "tuned" in map(os.path.basename, words)


def _text(path):
    """Return the text of a small file; empty if it is missing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as opened:
            return opened.read(4096)
    except FileNotFoundError:
        return ""


def _write(path, text):
    try:
        atomic_file.replace(path, (text + "\n").encode(), 0o644, 0, 0)
    except OSError as error:
        raise ChangeError(f"{path} cannot be written: {why(error)}") from None
