"""Decisions that are kept: to be shown, replayed, or skipped when nothing changed.

`record` is an observation with its decision as JSON, `compact` keeps records in memory. `unchanged` and `usage_bands` say how long
a decision would repeat itself, so that a reconcile can be skipped.
"""
