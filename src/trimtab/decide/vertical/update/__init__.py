"""One update loop: which running pods are resized in place or evicted, and why others stay.

The loop is a generator that yields actions and receives their results; carrying them out is the operator's part.
Reading order: `observation` and `actions` (input and output), `loop`, `vpa_update` (one VPA), `vpa_pods` and
`eligibility` (which pods should change), `in_place` and `evictions` (how they change), `resize` (one resize).
What holds changes back: `disruption_budget`, `disruption_ledger`, `eviction_limits`, all counted in `loop_state`;
`upstream_restrictions` has upstream's rules, for `--compat`.
Between loops: `lost_responses`, `refused_replacements`.
"""
