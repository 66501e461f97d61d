"""Logging in to one host: configuration, host keys, passwords, pipes and deadlines, before a session of either SSH client."""
