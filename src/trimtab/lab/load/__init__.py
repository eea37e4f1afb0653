"""What a cluster's pods have to do: load models as data, and what each pod uses because of them.

`curves` and `plan` are the data, `sharing`, `noise` and `backlog` the arithmetic, `measuring` the running whole. Nothing
here talks to a cluster.
"""
