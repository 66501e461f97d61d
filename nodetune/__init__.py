"""Audit, tune, verify and guard GPU servers."""

__version__ = "0.2.0.dev0"
