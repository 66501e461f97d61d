"""Hosts reached by one srun instead of by SSH."""
