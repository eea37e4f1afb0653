"""Everything that a decision depends on, as values.

Read `observation`, then its parts: `pods` with `requests`, `owners`, and `samples` with `staleness`. Reading from a cluster
is not done here: callers pass decoded objects in.
"""
