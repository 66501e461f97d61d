"""Which hosts a run is about, and how they are reached."""
