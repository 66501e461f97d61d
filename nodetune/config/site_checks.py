"""Checks that a site declares in its own file.

A sysctl, a file under /sys, a file's content, a service's state, a kernel argument, a line of /etc/nccl.conf, or an Xid
or any fact, which are judged but not fixed.
"""

import re
from dataclasses import replace
from functools import partial
from typing import Any

from nodetune.api import predicates, remedies
from nodetune.api.facts_view import FactsView
from nodetune.api.model import Check, Remedy
from nodetune.api.predicates import Predicate, Where
from nodetune.checks.shared import site_xids
from nodetune.checks.shared.nccl_settings import effective
from nodetune.facts.catalogue import shape_of
from nodetune.foundation.yaml_lines import LocatedYaml

KINDS = ("sysctl", "sysfs", "file", "service", "kernel_arg", "nccl_conf", "xid", "fact")
MANUAL = ("fact", "file", "xid")
"""Kinds without a fix: `manual` or `repair` says what to do instead."""

NOT_SET = "not set"
SERVICE_STATES = {
    "enabled": Where({"active": "active", "enabled": "enabled"}),
    "disabled": Where(
        {"active": predicates.Not("active"), "enabled": predicates.OneOf(["disabled", "masked", "static", "indirect"])}
    ),
    "masked": Where({"enabled": "masked"}),
}


def read(file: LocatedYaml) -> tuple[Check, ...]:
    """Read the checks under `add`. Errors are collected."""
    given = (file.data or {}).get("add") or []
    found: dict[str, Check] = {}
    for number, each in enumerate(given):
        with file.collecting():
            if each and each["id"] in found:
                file.fail(f"{each['id']} appears twice: keep one", "add", number, "id")
            if each:
                found[each["id"]] = _check(file, number, each)
    return tuple(found.values())


def _check(file: LocatedYaml, number: int, given: Any) -> Check:
    at = ("add", number)
    kind = next(kind for kind in KINDS if kind in given)
    subject = given[kind]
    if kind == "fact" and shape_of(subject) is None:
        file.fail(f"unknown fact {subject!r}: nodetune facts lists the facts of a host", *at, "fact")
    if kind in ("fact", "xid") and "set" in given:
        file.fail(f"a{'n Xid' if kind == 'xid' else ' fact'} is judged but not fixed: remove `set`", *at, "set")
    source, remedy = _fact_and_remedy(kind, subject)
    for word in [word for word in ("manual", "repair") if word in given]:
        if kind not in MANUAL:
            file.fail(f"{word} is for {', '.join(MANUAL)}, which nodetune does not fix: remove it", *at, word)
        remedy = remedies.repair(str(given[word])) if word == "repair" else remedies.manual(str(given[word]))
    wanted = given.get("set")
    told = f"Xid {subject}" if kind == "xid" else subject
    title = str(given.get("title", f"{told} differs from the site's wanted value"))
    doc = f"{title}\n\nWhy it matters: {given.get('why', 'a rule of this site')}\nSources: {file.file}\n"
    return Check(
        **source,
        accept=_accept(file, kind, given["accept"], *at, "accept"),
        set=str(wanted) if kind == "nccl_conf" and wanted is not None else wanted,
        severity=given.get("severity", "medium"),
        remedy=remedy,
        absent="skip" if kind == "xid" else "fail",
        id=given["id"],
        area="site",
        doc=doc,
    )


def _accept(file: LocatedYaml, kind: str, given: Any, *path: Any) -> Predicate:
    if kind == "service":
        if not isinstance(given, str) or given not in SERVICE_STATES:
            file.fail(f"a service must be {', '.join(SERVICE_STATES)}; found {given!r}", *path)
        return SERVICE_STATES[given]
    if kind == "sysfs" and isinstance(given, bool):
        file.fail("accept must have the content of the file: write on and off in quotes", *path)
    if kind == "nccl_conf":
        given = as_numbers(given)
    try:
        return predicates.from_data(str(given) if kind == "kernel_arg" and not isinstance(given, dict) else given)
    except ValueError as problem:
        file.fail(str(problem), *path)


def _fact_and_remedy(kind: str, subject: Any) -> tuple[dict[str, Any], Remedy]:
    """Return the source of the check's value (fact, or needs and observe), and its remedy."""
    if kind == "nccl_conf":
        return {"needs": ("nccl.settings",), "observe": partial(_nccl_setting, subject)}, remedies.nccl_conf(subject)
    if kind == "xid":
        return site_xids.source(subject), remedies.manual(
            "Look the Xid up in NVIDIA's catalogue, or change the site file."
        )
    if kind == "fact":
        return {"fact": subject}, remedies.manual("Set it to the site's wanted value, or change the site file.")
    if kind == "sysctl":
        return {"fact": f"sysctl.{subject}"}, remedies.sysctl(subject)
    if kind == "sysfs":  # what it disturbs is not known here: taking CPUs away must wait for an idle node
        return {"fact": f"sysfs.{subject}"}, replace(remedies.sysfs(subject), disruption="idle node")
    if kind == "file":
        return {"fact": f"file.{subject}"}, remedies.manual(f"Change {subject} to the site's wanted content.")
    if kind == "service":
        return {"fact": f"services.{subject.removesuffix('.service')}"}, remedies.service(subject)
    return {"fact": f"cmdline.running.{subject}"}, remedies.kernel_arg(subject)


def _nccl_setting(name: str, facts: FactsView) -> Any:
    """Return the value of a variable in a login session: the environment takes precedence over /etc/nccl.conf."""
    found = effective(facts["nccl.settings"], name)
    return as_numbers(str(found["value"])) if found else NOT_SET


def as_numbers(data: Any) -> Any:
    """Return the data with texts that NCCL reads as whole numbers as numbers: 32 and '32' are the same value."""
    if isinstance(data, dict):
        return {key: as_numbers(each) for key, each in data.items()}
    if isinstance(data, list):
        return [as_numbers(each) for each in data]
    return int(data) if isinstance(data, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,17}", data) else data
