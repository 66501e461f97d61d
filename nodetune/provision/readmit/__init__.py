"""Back to service: prove that a repaired host is well, then resume the drain that the guard owns, or say what is missing."""

STEPS = ("audit", "inventory", "verify", "find-slow", "audit again", "resume")
"""In this order. A step that fails keeps the host drained; the others still run, so that one list has all that is missing."""
