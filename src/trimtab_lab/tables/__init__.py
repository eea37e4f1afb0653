"""Tables: what `kubectl get` prints.

Reading order: `tables` (objects to a table), `columns` (the columns of built-in kinds and the function that makes a row), `cells`
(ages, selectors and labels as text). `pods`, `workloads`, `hpa` and `cluster` make the rows of their kinds.
"""
