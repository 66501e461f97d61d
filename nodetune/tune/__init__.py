"""Find better settings by measuring: a search over documented settings, confirmed on fresh runs, its result a proposal."""
