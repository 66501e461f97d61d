"""The guard's verdict for programs on the node that ask for it."""
