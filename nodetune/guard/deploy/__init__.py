"""The guard outside its nodes: installation on nodes, their status, and which drained nodes may be resumed."""
