"""The bundle for a vendor's support: what identifies the hardware and shows its fault, and nothing that is secret."""
