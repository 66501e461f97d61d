"""NCCL for the measurements: its API, configuration and log, ranks, collectives and results."""
