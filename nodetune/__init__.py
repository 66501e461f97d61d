"""Audit, tune, verify and guard GPU servers."""

__version__ = "0.1.0"
