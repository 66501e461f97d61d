"""The guard as it is seen from outside of its nodes: what is put on them, what they tell, and which may be resumed."""
