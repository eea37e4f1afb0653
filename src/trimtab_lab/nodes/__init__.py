"""Nodes without machines: a scheduler and kubelets that only write to the API.

`scheduler` binds pods and `kubelet` takes each pod through its life; both are clients of any cluster, and `node_pool`
registers their nodes. What they decide is pure: `capacity` (requests against allocatable), `pod_lifecycle` (start, ready,
restart, stop), `resize` (in place), `pod_status` (the status that they write). `usage_samples` holds the latest
measurement for metrics.k8s.io.
"""
