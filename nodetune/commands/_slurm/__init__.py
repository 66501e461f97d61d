"""The commands of `nodetune slurm`: one file each, imported only when it is used."""
