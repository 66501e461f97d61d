"""Reading inventories, and selecting the hosts of a run."""
