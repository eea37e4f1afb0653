"""The HPA controller: for every HPA and every sync, observe, decide, apply.

Reading order, along the path of a decision: `schedule` and `loop` (which HPAs are due), `batches` (shared metric `queries`),
`reconciler` (one HPA), `observe` (an `Observation` from `hpa_state`, `hpa_cache`, `pods`, `targets`, `owners` and `usage`), `decide`
(pure, in `trimtab.decide.horizontal`), `writer` and `write_slots`, `records`. `early_scaling` checks usage between syncs,
`clock_check` compares our clock with others, `viewer` decides without writing, and `controller` wires all of it. No module here
compares metric values with their targets.
"""
