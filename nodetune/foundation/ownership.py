"""Check who can write a file: programs to run and settings that name programs must be this user's or root's."""

import grp
import os
import pwd
import stat
from pathlib import Path


def writable_by_others(path: Path) -> str:
    """Return why another user can change the file; empty if only root and this user can.

    The folders above count too, also those of a link's target. Raise nothing: a path that cannot be
    read counts as another user's.
    """
    places = dict.fromkeys([*_upwards(path.absolute()), *_upwards(Path(os.path.realpath(path)))])
    return next((why for why in map(_why, places) if why), "")


def _upwards(path: Path) -> list[Path]:
    return [path, *path.parents]


def _why(place: Path) -> str:
    try:
        about = place.lstat()
    except OSError as problem:
        return f"{place}: {(problem.strerror or str(problem)).lower()}"
    if about.st_uid not in own():
        return f"{place} belongs to {name(about.st_uid)}"
    shared = stat.S_ISLNK(about.st_mode) or (stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX)
    if about.st_mode & stat.S_IWOTH and not shared:
        return f"every user can write {place}"
    if about.st_mode & stat.S_IWGRP and not shared and not _is_private(about.st_gid):
        return f"the group {_group(about.st_gid)} can write {place}"
    return ""


def own() -> set[int]:
    """Return root, this user, and the caller of sudo, who can run this as root anyway."""
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid(), int(caller) if caller.isdecimal() else 0}


def _is_private(group: int) -> bool:
    """Return whether a group is root's or has only its own user as member: many systems give each user such a group."""
    try:
        found = grp.getgrgid(group)
        users = {pwd.getpwuid(uid).pw_name for uid in own()}
    except KeyError:
        return group == 0
    return group == 0 or (found.gr_name in users and set(found.gr_mem) <= users)


def name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
