"""Connections to hosts: one round trip each, within a deadline. The only room that opens a connection."""
