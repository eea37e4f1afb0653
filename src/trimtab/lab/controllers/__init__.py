"""Workload controllers as clients of any cluster: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs.

Each controller has a queue of keys and a `reconcile` that looks at the state, never at the event. They read through
`mirror`, so that they always see what they wrote themselves.
"""
