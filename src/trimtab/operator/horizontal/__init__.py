"""The HPA controller: for every HPA and every sync, observe, decide, apply.

Reading order, along the path of a decision: `loop` (which HPAs are due) and `look` (usage between syncs), `batches` (shared metric
`queries`), `reconciler` (one HPA), `observe` (an `Observation` from `hpa_state`, `hpa_cache`, `pods`, `targets`, `owners` and
`usage`), `decide` (pure, in `trimtab.decide.horizontal`), `writer` and `write_slots`, `records`. `clock_check` compares our clock
with others, `viewer` decides without writing, and `controller` wires all of it. No module here compares metric values with their
targets.
"""
