"""Vertical decisions: how much CPU and memory the pods of a workload get, by role, and why.

Frozen values in, frozen values out, in the upstream VPA's own division. The recommender also keeps a `ClusterState`,
which its caller owns.

    input -> cluster_state -> histogram     recommender: samples enter the aggregates
             cluster_state -> recommend     recommender: aggregates become a VPA's status
    control                                 which VPA controls a pod
    resources                               a recommendation becomes requests and limits of a pod
    update, admission                       which pods the updater changes, what new pods get
    records, explain                        decisions as JSON, and in words
    compat                                  the differences from upstream, as switches

`input`    samples, OOM kills, history and checkpoints on their way into the cluster state. No reading from servers.
`cluster_state`  pods, VPAs and aggregates, the only mutable state. No estimates.
`histogram`      arrays of decaying histograms. No containers, no VPAs.
`recommend`      estimators, post-processing, conditions and quality. Does not change pods.
`control`        owners, scopes, claims and roles. No usage, no sizes.
`resources`      capping to policies, LimitRanges and nodes. No choice of pods.
`update`         eligibility, disruption budgets, evictions and in-place resizes. Performs nothing itself.
`admission`      patches of new pods, and startup boosts. No HTTP.

Reading order: `control`, `histogram`, `cluster_state`, `input`, `recommend`, then `resources`, `admission`, `update`.
Callers import from the modules: an import of everything here would load numpy into processes that only admit pods.
"""
