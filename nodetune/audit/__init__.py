"""Facts to findings: which checks run, what they conclude, and how hosts compare."""
