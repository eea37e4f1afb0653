"""Clients of the metrics APIs and of Prometheus.

Reading order: `queries` (what can be asked), `reader` (the three metrics APIs), `bulkheads` (slots per source),
`versions` (of usage and of custom metrics),
`prometheus` (instant and range queries), `range_queries` (long ranges in pieces), `usage_history` (past usage of pods).

What does not belong here: decisions, and caches of objects (`cluster`).
"""
