"""The commands of `nodetune guard`: one file each, imported only when it is used."""
