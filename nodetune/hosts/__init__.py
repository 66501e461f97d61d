"""The hosts of a run and how to reach them."""
