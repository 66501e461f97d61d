"""The published JSON documents: schemas, and how each is written and read."""
