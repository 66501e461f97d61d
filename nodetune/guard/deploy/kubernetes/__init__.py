"""The guard in Kubernetes: plain manifests, and the chart that is made of the same."""
