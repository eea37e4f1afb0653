"""Pods as the caches of a process keep them.

A cluster has a hundred times more pods than autoscalers, so the bytes kept per pod decide how much memory a process
takes. Parts that the pods of a workload have in common are decoded once and shared.

Read `interning`, `wire`, `decoder` (only horizontal runs: a pod is reduced to its snapshot), `whole_pods` (a vertical
component runs: pods are kept whole, as far as decisions read them) and `follow`, which feeds the horizontal
controller from whichever of the two is watched. What pods mean for a decision belongs in `decide`.
"""
