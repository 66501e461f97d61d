"""Back to service: prove that a repaired host is well, then resume the drain that the guard owns, or say what is missing."""
