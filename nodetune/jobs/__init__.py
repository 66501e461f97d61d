"""Judges running jobs: what their GPUs wait for (`watch`), which rank the others wait for (`late_ranks`)."""
