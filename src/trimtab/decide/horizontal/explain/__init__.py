"""Decisions in words.

`reason` names why the replicas change or stay. `explanation` puts the whole decision together, from `wording`, `change_reason`,
`units`, `holds` and `advice` (what would have to change). `from_status` serves callers that may not read the metrics.
"""
