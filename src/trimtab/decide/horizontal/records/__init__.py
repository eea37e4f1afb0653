"""Decisions that are kept, to be shown and replayed.

`record` is an observation with its decision as JSON, `compact` keeps records in memory.
"""
