"""Hosts that one srun reaches instead of SSH."""
