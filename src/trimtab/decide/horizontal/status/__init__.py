"""The status of an HPA.

`conditions` reports a decision in conditions and events, and `ignored_fields` names what has no effect. `generations` says which
spec they describe. `after_write` completes a decision, `writes` and `moved_values` say when its status is written. No replicas are
computed here.
"""
