"""Connections to hosts: one round trip each, within a deadline. Only this package opens connections."""
