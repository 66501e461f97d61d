"""Fact documents: read, written, saved and cached."""
