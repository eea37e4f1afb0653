"""Kubernetes' own controllers, small enough for a lab.

`manager` starts those that are clients of a cluster: `deployments` (with the pure `rollout`), `replica_sets`,
`stateful_sets` and `daemon_sets` (with `revisions`), `jobs`. `leader_labels` plays the leader election of workloads.
`disruption` and `garbage_collector` run inside the lab's API server, on its store. Read `base` first.
"""
