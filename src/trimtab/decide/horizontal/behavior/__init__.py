"""What may be done now with the replicas that the metrics ask for.

`normalize` applies `stabilization`, then minReplicas and maxReplicas, then `rate_limits`. `scale_to_zero` holds the bounds, and
the rules of scaling to and from zero.
"""
