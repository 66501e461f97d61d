"""Is this one worse than its like, or than before? One rule for each form of the question, and all thresholds (`thresholds.py`). Pure."""
