"""The records of runs that change hosts."""
