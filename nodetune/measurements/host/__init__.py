"""The host for the measurements: reports, processes, CPUs, other programs, temporary settings, and the load of others."""
