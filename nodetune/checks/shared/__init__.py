"""Helpers that checks of several areas and other rooms share, without checks."""
