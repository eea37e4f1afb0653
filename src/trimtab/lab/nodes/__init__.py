"""Nodes without machines: what a scheduler and kubelets would do, by writing statuses.

`room`, `lifecycle`, `resize` and `statusbody` decide, without I/O; `scheduler`, `agent` and `pool` write to a cluster.
"""
