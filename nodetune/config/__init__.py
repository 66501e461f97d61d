"""Profiles, site files and waivers: what a site wants to be checked, and how."""
