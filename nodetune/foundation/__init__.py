"""Small parts that know nothing of GPUs or hosts."""
