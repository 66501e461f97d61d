"""A setting of a network link: {"link", "setting": mtu | rings | channels | adaptive-rx, "value", "confirm_seconds", "peers"}.

value: a number or "max" (rings, channels), or true or false (adaptive-rx). State: {"mtu": 1500}, {"rx": 256, "tx": 256},
{"combined": 8}, {"adaptive-rx": "off"}.

Each change undoes itself: a timer that runs the inverse command is set before anything is touched, and `confirm`, called
over a new connection, removes it. This applies to all links, whatever their traffic. A new MTU is also set back at once if it
loses one of the peers ({address: {"host", "mtu"}}) that answered before.
"""

import os
import re

from .. import command, frames
from ..journal import HOME, Journal, changes, left
from ..problem import ChangeError, why

TIMED = True
CONFIRM_SECONDS = 120
LINKS = "/sys/class/net"
SYSTEMD = "/run/systemd/system"
TIMERS = "nodetune-link-"
RINGS = {"RX": "rx", "TX": "tx"}
CHANNELS = {"Combined": "combined"}
SETTERS = {"rings": "-G", "channels": "-L", "adaptive-rx": "-C"}
NOW, MAXIMUMS = "Current hardware settings", "Pre-set maximums"


def read(change):
    link, setting = change["link"], change["setting"]
    if not os.path.isdir(os.path.join(LINKS, link)):
        raise ChangeError(f"{link}: the link does not exist")
    if setting == "mtu":
        return {"mtu": _mtu(link)}
    if setting == "adaptive-rx":
        return {"adaptive-rx": adaptive(command.run(["ethtool", "-c", link]), label(change))}
    return _amounts(change, NOW)


def wanted(change, now):
    value = change["value"]
    if value == "max":
        return _amounts(change, MAXIMUMS)
    if change["setting"] == "adaptive-rx":
        return {"adaptive-rx": "on" if value else "off"}
    return {key: int(value) for key in now}


def put(change, state):
    """Set the timer, then the link. Raise ChangeError if there is no systemd, the driver refuses, or a peer is lost."""
    before = read(change)
    proven = "peers" in change and state == wanted(change, before)
    known = frames.peers(change["link"], change["peers"], min(before["mtu"], state["mtu"])) if proven else {}
    _undo_later(change, setter(change, before))
    try:
        command.run(setter(change, state))
    except ChangeError:
        if read(change) == before:
            _stop(timer(change))
        raise
    lost = frames.lost(change["link"], known, before["mtu"], state["mtu"]) if proven else ""
    if lost:
        command.run(setter(change, before))
        _stop(timer(change))
        raise ChangeError(f"{label(change)}: set back to {before['mtu']}: {lost}")


def show(change, state):
    return " ".join(f"{key} {value}" for key, value in state.items()) + "\n"


def label(change):
    return f"{change['link']} {change['setting']}"


def timer(change):
    """Return the unit whose timer undoes the change."""
    return TIMERS + re.sub(r"[^A-Za-z0-9:_.-]", "_", f"{change['link']}-{change['setting']}")


def setter(change, state):
    """Return the command that puts the link into a state."""
    if change["setting"] == "mtu":
        return ["ip", "link", "set", "dev", change["link"], "mtu", str(state["mtu"])]
    amounts = [text for key, value in state.items() for text in (key, str(value))]
    return ["ethtool", SETTERS[change["setting"]], change["link"], *amounts]


def pending():
    """Return the units (without .timer) of all unconfirmed changes."""
    if not os.path.isdir(SYSTEMD):
        return []
    rows = command.run(["systemctl", "list-units", "--all", "--plain", "--no-legend", f"{TIMERS}*.timer"]).splitlines()
    return [row.split()[0][: -len(".timer")] for row in rows if row.strip()]


def confirm(run, home=HOME):
    """Confirm all link changes, so that they stay. Return the labels of those of the run.

    Call it over a connection made after the changes: the connection is the proof. Raise ChangeError
    if a change has been undone already.
    """
    for unit in pending():
        _stop(unit)
    made = {
        label(entry["change"]): entry
        for entry in changes(Journal(run, home).entries())
        if entry["change"]["change"] == "link"
    }
    lost = [name for name, entry in made.items() if read(entry["change"]) != left(entry)]
    if lost:
        raise ChangeError(f"{', '.join(lost)}: not confirmed in time and therefore undone: apply again")
    return list(made)


def amounts(text, names):
    """Parse `ethtool -g` and `-l` into {section: {name: number}}, without what the driver does not have."""
    sections, section = {}, {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and not value.strip():
            section = sections.setdefault(name.strip(), {})
        elif name.strip() in names and value.strip().isdigit():
            section[names[name.strip()]] = int(value)
    return sections


def adaptive(text, what):
    found = re.search(r"^Adaptive RX:\s*(on|off)\b", text, re.MULTILINE)
    if not found:
        raise ChangeError(f"{what}: the driver does not have this setting")
    return found.group(1)


def _amounts(change, section):
    option, names = ("-g", RINGS) if change["setting"] == "rings" else ("-l", CHANNELS)
    sections = amounts(command.run(["ethtool", option, change["link"]]), names)
    # a maximum of 0 is how some drivers say that they do not have it
    has = [key for key, most in sections.get(MAXIMUMS, {}).items() if most]
    found = {key: number for key, number in sections.get(section, {}).items() if key in has}
    if not found:
        raise ChangeError(f"{label(change)}: the driver does not have this setting")
    return found


def _mtu(link):
    try:
        with open(os.path.join(LINKS, link, "mtu")) as text:
            return int(text.read())
    except OSError as error:
        raise ChangeError(f"{link}: its MTU cannot be read: {why(error)}") from None


def _undo_later(change, argv):
    if not os.path.isdir(SYSTEMD):
        raise ChangeError(
            f"{label(change)}: left alone: without systemd, nothing would undo it if the host became unreachable"
        )
    unit = timer(change)
    if unit in pending():
        raise ChangeError(f"{label(change)}: an earlier change is not confirmed yet and may be undone: try again later")
    seconds = int(change.get("confirm_seconds") or CONFIRM_SECONDS)
    argv = [command.find(argv[0]), *argv[1:]]
    # the accuracy is a minute if nothing is said
    when = [f"--on-active={seconds}s", "--timer-property=AccuracySec=1s"]
    command.run(["systemd-run", "--collect", f"--unit={unit}", *when, "--", *argv])


def _stop(unit):
    """Stop a timer. One that fires just now is already gone: its effect shows on the link."""
    command.attempt(["systemctl", "stop", f"{unit}.timer", f"{unit}.service"])
