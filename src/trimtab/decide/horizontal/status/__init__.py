"""The status of an HPA: conditions, events, and the decision that carries them.

`scale_status`, `selection_status`, `metrics_status`, `clock` and `ignored_fields` turn the results of the steps of a decision into
changes of conditions and events. `generations` says which spec they describe. `builder` applies the changes and assembles the decision for `decide`. Afterwards
`dry_run` or `after_write` complete it. No replicas are computed here.
"""
