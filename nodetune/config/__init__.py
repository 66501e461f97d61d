"""Profiles, site files and waivers: what a site checks, and against which values."""
