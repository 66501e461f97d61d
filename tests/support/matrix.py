"""Which source's faults arrive at which consumer, with what, and why not: the cells of docs/project/matrix.md.

tests/unit/report/test_matrix.py proves each cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodetune.api.conclusion import SOURCES

HOST, DEVICE, FAULT, SEVERITY, STATEMENT, COMMAND = PARTS = (
    "host",
    "device",
    "fault",
    "severity",
    "statement",
    "command",
)


@dataclass(frozen=True)
class Consumer:
    """What a consumer gets of each fault, and why not the rest."""

    name: str
    parts: tuple[str, ...] = PARTS
    why: str = ""


NAMES = "notices leave the site: names only, never values"
CONSUMERS = (
    Consumer("notice: JSON", (HOST, DEVICE, FAULT, SEVERITY), NAMES),
    Consumer("notice: Slack", (HOST, DEVICE, FAULT, SEVERITY), NAMES),
    Consumer("notice: Alertmanager", (HOST, DEVICE, FAULT, SEVERITY), NAMES),
    Consumer("notice: OpenTelemetry", (HOST, DEVICE, FAULT, SEVERITY), NAMES),
    Consumer("history"),
    Consumer("status: text"),
    Consumer("status: JSON"),
    Consumer("status: HTML"),
    Consumer("status: CSV"),
    Consumer("status: lines", (HOST, DEVICE, FAULT, SEVERITY, STATEMENT), "a line is a fault, for grep: CSV has the command"),
    Consumer("status: JUnit"),
    Consumer("status: Markdown"),
    Consumer("status: Prometheus", (HOST, DEVICE, FAULT, SEVERITY), "labels are names: a sentence with values makes a new series with each value"),
    Consumer("status: NFD", (HOST, SEVERITY), "labels of nodes are few: the worst severity of all faults"),
    Consumer("agents (MCP)"),
    Consumer("exit code", (SEVERITY,), "a number"),
    Consumer("readmit's evidence"),
    Consumer("support bundle"),
    Consumer("Kubernetes condition", (HOST, STATEMENT), "a node has one condition, without a severity: it names the checks that fail, with what they saw"),
)  # fmt: skip

NO_JOB = "readmit proves a drained node: no job runs there"
BY_ITSELF = "readmit examines the node again by itself"
OF_HISTORY = "readmit proves what is now: the history keeps what was"
NOT_REPAIRED = "a vendor's support gets what is to be repaired: this is not"
GATING = "the guard judges the gating checks on the node itself, without other sources"

EMPTY = {
    **{(source, "readmit's evidence"): NO_JOB for source in ("late-ranks", "ras", "watch")},
    **{(source, "readmit's evidence"): OF_HISTORY for source in ("trend", "episodes")},
    ("guard", "readmit's evidence"): BY_ITSELF,
    **{(source, "support bundle"): NOT_REPAIRED for source in ("reach", "verify", "late-ranks", "ras", "watch")},
    **{(source, "Kubernetes condition"): GATING for source in SOURCES if source != "guard"},
}
"""(source, consumer) → why its faults do not arrive there."""

PARTLY = {
    ("reach", consumer.name): ((HOST,), "the verdict `not reached` says fault and severity")
    for consumer in CONSUMERS
    if consumer.name.startswith("notice")
}
"""(source, consumer) → the parts that arrive, and why not the others that this consumer gets."""


def parts(source: str, consumer: Consumer) -> tuple[str, ...]:
    """Return the parts that arrive; none for an empty cell."""
    if (source, consumer.name) in EMPTY:
        return ()
    return PARTLY.get((source, consumer.name), (consumer.parts, ""))[0]
