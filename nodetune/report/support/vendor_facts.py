"""The facts that a vendor needs, and texts without secrets. Pure.

Two barriers: only facts of hardware and its driver pass, as the catalogue says, and in all texts what looks like a secret is removed.
"""

import re
from collections.abc import Mapping
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.facts import catalogue, document

REMOVED = "removed"
_WORD = (
    r"[\w.-]*(?:token|secret|passw|pwd|api_?key|access_?key|private_?key|credential|bearer|authorization|cookie)[\w.-]*"
)
SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    rf"|(?P<named>\b{_WORD}[\"']?\s*[=:\s]\s*[\"']?)(?:(?:basic|bearer)\s+)?[^\s\"',;}}]+"
    r"|(?P<address>\b[a-z][a-z0-9+.-]*://)[^/\s@]+@"
    r"|(?P<process>\bname=)[^,\s]+"
    r"|\b(?:hf_|gh[pousr]_|github_pat_|glpat-|sk-|nvapi-|xox[abprs]-|AKIA|ASIA|AIza|dop_v1_)[\w-]{10,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.?[\w-]*",
    re.IGNORECASE | re.DOTALL,
)
"""Texts that look like secrets. `named`, `address` and `process` stay in front of what is removed."""


def is_shown(name: str) -> bool:
    """Tell whether a fact, or a leaf of one, is about hardware or its driver."""
    return catalogue.in_a_bundle(name.partition("/")[0])


def of(facts: HostFacts) -> HostFacts:
    """Return the facts that a vendor needs, without secrets."""
    shown = {name: fact for name, fact in facts.facts.items() if is_shown(name)}
    about = {name: facts.about[name] for name in ("time", "seconds", "nodetune") if name in facts.about}
    return document.from_data(clean(document.to_data(HostFacts(facts.host, shown, about))))


def clean(data: Any) -> Any:
    """Return JSON data without what looks like a secret, in names too."""
    if isinstance(data, Mapping):
        return {clean(key): REMOVED if _is_secret(key, each) else clean(each) for key, each in data.items()}
    if isinstance(data, list | tuple):
        return [clean(each) for each in data]
    return SECRET.sub(_removed, data) if isinstance(data, str) else data


def renamed(data: Any, name: str, other: str) -> Any:
    """Return JSON data with another name of the host in all texts. A name of digits stays within an address or a time."""
    edge = "[A-Za-z0-9]" if re.search("[A-Za-z]", name) else "[A-Za-z0-9:.-]"
    whole = re.compile(rf"(?<!{edge}){re.escape(name)}(?!{edge})", re.IGNORECASE)

    def of(data: Any) -> Any:
        if isinstance(data, Mapping):
            return {of(key): of(each) for key, each in data.items()}
        if isinstance(data, list | tuple):
            return [of(each) for each in data]
        return whole.sub(other, data) if isinstance(data, str) else data

    return of(data)


def _is_secret(key: Any, value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(_WORD, str(key), re.IGNORECASE))


def _removed(found: re.Match[str]) -> str:
    before = found["named"] or found["address"] or found["process"] or ""
    return f"{before}{REMOVED}{'@' if found['address'] else ''}"
