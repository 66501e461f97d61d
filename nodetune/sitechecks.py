"""Checks that a site adds in its own file, declaratively: a sysctl, a file's content, a service's state, a kernel argument."""

from __future__ import annotations

import re
from typing import Any

from nodetune import expect, remedies
from nodetune.expect import Predicate, Where
from nodetune.located import Located
from nodetune.model import SEVERITIES, Check, Remedy

KINDS = ("sysctl", "file", "service", "kernel_arg")
SERVICE_STATES = {
    "enabled": Where({"active": "active", "enabled": "enabled"}),
    "disabled": Where(
        {"active": expect.Not("active"), "enabled": expect.OneOf(["disabled", "masked", "static", "indirect"])}
    ),
    "masked": Where({"enabled": "masked"}),
}
KEYS = {"id", "title", "why", "accept", "set", "severity", *KINDS}


def read(file: Located) -> tuple[Check, ...]:
    """The checks under `add`. Raises BadFile."""
    given = (file.data or {}).get("add") or []
    if not isinstance(given, list):
        file.fail("add wants a list of checks", "add")
    found = tuple(_check(file, number, each) for number, each in enumerate(given))
    ids = [check.id for check in found]
    for number, check_id in enumerate(ids):
        if check_id in ids[:number]:
            file.fail(f"{check_id} stands twice: keep one", "add", number, "id")
    return found


def severity(file: Located, given: Any, *path: Any) -> str:
    """A severity from a file. Raises BadFile."""
    if given not in SEVERITIES:
        file.fail(f"severity wants one of {', '.join(SEVERITIES)}, found {given!r}", *path)
    return str(given)


def _check(file: Located, number: int, given: Any) -> Check:
    at = ("add", number)
    if not isinstance(given, dict):
        file.fail("a site check is a mapping", *at)
    for key in given:
        if key not in KEYS:
            file.fail(f"no setting of a site check is called {key!r}: use {', '.join(sorted(KEYS))}", *at, key)
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1:
        file.fail(f"a site check names exactly one of {', '.join(KINDS)}", *at)
    check_id = str(given.get("id", ""))
    if not re.fullmatch(r"site-[a-z0-9-]+", check_id):
        file.fail("a site check has an id that begins with site- (small letters, digits, dashes)", *at, "id")
    if "accept" not in given:
        file.fail("a site check says what it accepts", *at)
    kind, subject = kinds[0], str(given[kinds[0]])
    fact, remedy = _fact_and_remedy(kind, subject)
    title = str(given.get("title", f"{subject} is not as this site wants it"))
    doc = f"{title}\n\nWhy it matters: {given.get('why', 'a rule of this site')}\nSources: {file.file}\n"
    return Check(
        fact=fact,
        accept=_accept(file, kind, given["accept"], *at, "accept"),
        set=given.get("set"),
        severity=severity(file, given.get("severity", "medium"), *at, "severity"),
        remedy=remedy,
        absent="fail",
        id=check_id,
        area="site",
        doc=doc,
        stability="stable",
    )


def _accept(file: Located, kind: str, given: Any, *path: Any) -> Predicate:
    if kind == "service":
        if not isinstance(given, str) or given not in SERVICE_STATES:
            file.fail(f"a service is wanted {', '.join(SERVICE_STATES)}; found {given!r}", *path)
        return SERVICE_STATES[given]
    try:
        return expect.from_data(str(given) if kind == "kernel_arg" and not isinstance(given, dict) else given)
    except ValueError as problem:
        file.fail(str(problem), *path)


def _fact_and_remedy(kind: str, subject: str) -> tuple[str, Remedy]:
    if kind == "sysctl":
        return f"sysctl.{subject}", remedies.sysctl(subject)
    if kind == "file":
        return f"file.{subject}", remedies.manual(f"Give {subject} the content that this site wants.")
    if kind == "service":
        return f"services.{subject.removesuffix('.service')}", remedies.service(subject)
    return f"cmdline.running.{subject}", remedies.kernel_arg(subject)
