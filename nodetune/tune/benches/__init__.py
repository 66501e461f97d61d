"""The subjects of tuning, one file each: their parameters, and how to measure one setting."""
