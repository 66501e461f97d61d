"""Runs the measurements on hosts and judges the figures."""
