"""The embedded cluster: an API server that kubectl believes, workload controllers, nodes and load."""
