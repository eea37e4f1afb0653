"""Decisions that are kept: to be shown, replayed, or skipped when nothing changed.

`record` is an observation with its decision as JSON, `format_1` and `format_2` read those of earlier programs; `compact` keeps records in memory. `unchanged` and `usage_bands` say how long
a decision would repeat itself, so that a reconcile can be skipped.
"""
