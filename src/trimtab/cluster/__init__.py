"""The port to a Kubernetes API server: transport, caches, discovery, writes, leases. No decisions."""
