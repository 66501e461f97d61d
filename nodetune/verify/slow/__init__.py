"""Who makes the others wait: ranks and hosts in what NCCL's Inspector wrote of jobs, and missing ranks of a job that hangs."""
