"""The HPA controller: for every HPA and every sync, snapshot, decide, apply.

Reading order, along the path of a decision: `inputs` (caches), `schedule` and `loop` (which HPAs are due), `batches`
(shared metric queries), `reconciler` (one HPA), `snapshot` (an `Observation` from the caches and samples), `decide`
(pure, in `trimtab.decide.horizontal`), `writer` and `write_slots`, `records`. `early_scaling` checks usage between
syncs, `clock_check` compares our clock with others, `dry_run` decides without writing, and `controller` wires all of it. No module here compares metric values with
their targets.
"""
