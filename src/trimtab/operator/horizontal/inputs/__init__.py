"""The caches that decisions read: HPAs, targets, pods, owners and metrics.

Nothing here decides or writes. Read `kinds` (what is watched), `hpa_cache` and `hpa_state` (each HPA with its
`hpa_memory`), `targets`, `pod_index` and `matched_pods` (which pods an HPA counts), `owners`, then `metric_queries`
and `pod_usage`. The operator's own state of one HPA is written by the methods of `HpaState` only.
"""
