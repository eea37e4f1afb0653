"""Decaying histograms, all of one resource in one numpy matrix.

Belongs here: arithmetic on arrays, with upstream's rounding to the last bit. Containers, VPAs and policies do not.

Reading order: `buckets` (the layout), `matrix` (add, subtract, decay and merge for many histograms), `percentiles`,
`histogram` (a view of one column, and its checkpoint). `table`, `int64_times` and `go_math` are the tools beneath.
"""
