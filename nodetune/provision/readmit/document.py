"""A readmission as JSON data (schema nodetune.readmit/1), as a page of text, and as the file of evidence."""

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nodetune.api import conclusion_json
from nodetune.facts import document as facts_document
from nodetune.foundation import json_document, sealed, text
from nodetune.provision.readmit.preparation import Prepared
from nodetune.provision.readmit.readmission import Readmission
from nodetune.provision.readmit.request import ReadmitRequest
from nodetune.provision.readmit.stages import STAGES
from nodetune.provision.record import FAILED, StageResult

SCHEMA = "nodetune.readmit/1"
WIDTH = max(len(each.name) for each in STAGES)


def document(found: Readmission) -> dict[str, Any]:
    return {
        **json_document.head(SCHEMA),
        "host": found.host,
        "back": found.is_back,
        "steps": [
            {"step": step, "state": each.state, "message": each.message, "seconds": round(each.seconds, 3)}
            for step, each in found.steps.items()
        ],
        "missing": found.missing,
        "exchanged": [
            {"kind": each.kind, "place": each.place, "before": each.before, "after": each.after}
            for each in found.inventory.exchanges
        ],
        **conclusion_json.members(found.concluded),
    }


def page(found: Readmission) -> str:
    """Return the steps, then what is missing, as text."""
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: Readmission) -> Iterator[str]:
    yield from (_step(step, each) for step, each in found.steps.items())
    yield ""
    if found.missing:
        yield f"{found.host} stays out of service. Missing:"
        yield from (f"  {each}" for each in found.missing)
    else:
        yield f"{found.host} is back in service" if found.is_back else f"{found.host}: nothing is missing"


def _step(step: str, each: StageResult) -> str:
    state = "MISSING" if each.state == FAILED else each.state
    return f"{step:{WIDTH}}  {state:8}  {each.message}".rstrip()


def plan(prepared: Prepared) -> str:
    """Return what would be done, as text."""
    request, node = prepared.request, prepared.node
    near = f"with {', '.join(prepared.neighbours)}" if prepared.neighbours else f"left out: {prepared.alone}"
    suite = ", ".join(request.only) or "the quick suite"
    earlier = f"against {request.before}" if request.before else "by the history" if request.history else ""
    drained = f"{node.state}: {text.plain(node.reason, 80) or 'no reason'}" if node else prepared.no_slurm
    ours = "if the node's record proves that the drain is the guard's" if prepared.may_be_ours else "not the guard's"
    steps = {
        "audit": "its gating checks",
        "inventory": earlier or "left out: no earlier facts: --before FILE or --history",
        "verify": f"{suite}, and all GPUs under load for {text.span(request.load_seconds)}",
        "find-slow": near,
        "audit again": "what the load has left",
        "resume": f"{ours} ({drained})" if node else drained,
    }
    return "".join(f"{step:{WIDTH}}  {told}\n" for step, told in steps.items()) + "dry run: nothing was done\n"


def evidence_of(request: ReadmitRequest, began: float) -> Path:
    """Return the file of evidence: the one that was named, else one with the host and the time."""
    stamp = datetime.fromtimestamp(began, timezone.utc).strftime("%Y%m%dT%H%MZ")
    safe = facts_document.file_name(request.host, set()).removesuffix(".json")
    return request.evidence or Path(f"{safe}-readmit-{stamp}.tar.gz")


def keep(found: Readmission, request: ReadmitRequest, path: Path) -> None:
    """Write the evidence. Raise SigningError, OSError."""
    own = {"readmit.json": document(found), "conclusions.json": conclusion_json.members(found.concluded)}
    documents = {name: json_document.text(each) for name, each in own.items()}
    sealed.write(path, {**found.documents, **documents, "summary.txt": page(found)}, request.key)
