"""Vertical decisions: how much CPU and memory the pods of a workload get, by role, and why.

Frozen values in, frozen values out, in the upstream VPA's own division: input, cluster state, histogram, recommendation,
then updater and admission.

    input, recommend, update      what enters the model, what leaves it, which pods change
    cluster_state, admission      the model of the recommender, what a new pod gets
    control, histogram, resources which VPA controls a pod, arrays of histograms, sizes of a pod
    rules                        whose rules a decision follows

Folders import only from the lines below their own. `records` and `explain` above them turn decisions into JSON and words.

- `control`: owners, scopes, claims and roles. No usage, no sizes.
- `histogram`: decaying histograms in numpy arrays. No containers, no VPAs.
- `cluster_state`: pods, VPAs and aggregates, the only mutable state. No estimates.
- `input`: samples, OOM kills, history and checkpoints on their way into the cluster state. No reading from servers.
- `recommend`: estimators, post-processing, conditions and quality. No pods.
- `resources`: from a recommendation to requests and limits: policies, LimitRanges, nodes. No choice of pods.
- `admission`: patches of new pods, and startup boosts. No HTTP.
- `update`: eligibility, disruption budgets, evictions and in-place resizes, as actions for the operator to perform.

This is also the reading order. Callers import from the modules, since importing all of them here would load numpy into
processes that only admit pods.
"""
