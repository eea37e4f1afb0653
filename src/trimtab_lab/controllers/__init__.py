"""Kubernetes' own controllers, small enough for a lab, as tasks of the server.

Read `controller` (the queue, the lag) and `objects` (reads and writes) first. `deployments`, `replica_sets`, `stateful_sets` and
`daemon_sets` (with `revisions`) and `jobs` make pods; only a server that is asked for them runs them. `disruption` and
`garbage_collector` always run. `kinds` has the objects with their types, `pods` what several controllers ask of pods.
"""
