"""The subjects of tuning, a file each: what may be changed there, and how one setting is measured."""
