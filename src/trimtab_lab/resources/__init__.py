"""What the lab serves, and the rules of each kind: defaults, validation, what may change.

Reading order: `registry` (resources, found by group, version and name), `builtin` (the table of built-in resources), `strategy`
(the rules that a kind may have). Then one module per kind or family: `pod_spec`, `pods`, `workloads`, `jobs`, `hpa`, `services`,
`namespaces_nodes`, `events`, `configuration`. The rules of custom resources are in `crd`.
"""
