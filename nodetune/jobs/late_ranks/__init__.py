"""The ranks and hosts that the others of a job wait for: from files of NCCL's Inspector, and from the RAS service of a job that hangs."""
