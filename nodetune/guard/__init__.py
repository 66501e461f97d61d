"""The health check before a job: `node` runs on the node, `deploy` brings it there."""
