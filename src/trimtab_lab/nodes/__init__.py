"""Nodes without machines: a scheduler, kubelets and elections that only write to the API, as clients of any cluster.

`scheduler` binds pods, `kubelet` takes each pod through its life and measures it, and `node_pool` registers nodes. What they
decide is pure: `pod_lifecycle` (start, ready, restart, stop, and the status of each) and `resize` (in place). `elections` plays
the leader election of workloads. `caches` shows them their own writes.
"""
