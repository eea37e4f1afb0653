"""The horizontal loop: for every HPA and every period, observe, decide, apply.

Caches know the objects, `questions` what to ask the metrics APIs, `observe` puts both into an `Observation`, `decide` (pure)
turns it into a `Decision`, and `writes` carries it out. Nothing in this package compares numbers.
"""
