"""What is different between two sets of facts, or between two audits."""
