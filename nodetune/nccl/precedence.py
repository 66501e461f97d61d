"""Which of several lines with the same name wins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodetune.nccl.judging import takes_effect
from nodetune.nccl.settings import CONF_SCOPES, Problems, Setting, meant, subject

LOGIN_ORDER = ("nccl.conf", "home", "pam_env", "environment", "profile", "task prolog")
"""What makes up the environment of a login session; the later wins."""


def effective(settings: Sequence[Setting], name: str) -> Setting | None:
    """The setting of that name that wins in a login session."""
    mine = [each for each in settings if each["name"] == name and each["scope"] in LOGIN_ORDER and takes_effect(each)]
    return max(mine, key=_rank, default=None)


def _rank(setting: Setting) -> tuple[int, str, int]:
    """Where in the order of precedence: the environment wins over conf files; there the first line wins."""
    first_wins = setting["scope"] in CONF_SCOPES
    return LOGIN_ORDER.index(setting["scope"]), setting["file"], -setting["line"] if first_wins else setting["line"]


def repeated(settings: Sequence[Setting]) -> Problems:
    """Names that are set more than once: which line wins, and which is in vain."""
    found: Problems = {}
    for same in _by_name(settings):
        winner = max(same, key=_rank)
        losers = [each for each in same if each is not winner and _clash(each, winner)]
        found.update((subject(each), _beaten(each, winner)) for each in losers)
    return found


def _by_name(settings: Sequence[Setting]) -> Iterable[list[Setting]]:
    """The settings of login sessions, those of one name together."""
    names: dict[str, list[Setting]] = {}
    for setting in settings:
        if setting["value"] is not None and setting["scope"] in LOGIN_ORDER and setting["name"] == meant(setting):
            names.setdefault(setting["name"], []).append(setting)
    return names.values()


def _clash(loser: Setting, winner: Setting) -> bool:
    return bool(loser["file"] == winner["file"] or loser["value"] != winner["value"])


def _beaten(loser: Setting, winner: Setting) -> str:
    place = f"{winner['file']} line {winner['line']} sets {winner['value']}"
    return f"{loser['value']} is in vain: {place} ({_why(loser, winner)})"


def _why(loser: Setting, winner: Setting) -> str:
    if loser["file"] == winner["file"]:
        return "the first line counts here" if loser["scope"] in CONF_SCOPES else "the last line counts here"
    if loser["scope"] in CONF_SCOPES and winner["scope"] not in CONF_SCOPES:
        return "the environment wins over every conf file"
    if loser["scope"] == "nccl.conf":
        return "NCCL_CONF_FILE or ~/.nccl.conf wins over /etc/nccl.conf"
    return "it is applied later"
