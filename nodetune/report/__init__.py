"""Reporters: one file per format, each a function of results."""
