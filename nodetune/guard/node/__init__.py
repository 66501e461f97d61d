"""The guard: the program on the node that Slurm asks before each job. Standard library, pynvml, and what judges."""
