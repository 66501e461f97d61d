"""The commands of `nodetune tune`."""
