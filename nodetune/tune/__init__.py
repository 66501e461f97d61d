"""Find better settings by measuring: search documented settings, confirm on fresh runs, and write a proposal."""
