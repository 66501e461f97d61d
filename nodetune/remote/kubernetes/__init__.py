"""Nodes of a Kubernetes cluster through its API: no SSH, no kubectl and no client library is needed."""
