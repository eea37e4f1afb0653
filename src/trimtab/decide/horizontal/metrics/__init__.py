"""One proposal per metric: how many replicas it asks for, and why.

Each kind of metric has a module; `of_metric` in `proposals.each` picks it. A metric that cannot be used gives a
`Failure`, a value that carries the condition, event and error that upstream would tell.
"""
