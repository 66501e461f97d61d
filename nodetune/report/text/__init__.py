"""Reports for people at a terminal."""
