"""One process of `trimtab run`: the loops that observe a cluster, decide and write.

`operator` assembles the process, `runtime` holds what its components share, and `process` starts and ends it.
`ownership` divides objects among replicas, `control_loop` repeats the steps of a component, `health` serves the port.
The components are in `horizontal` and `vertical`, their pods in `pods`, their flags in `settings`. Decisions are made
in `trimtab.decide`; nothing here compares usage with a target.
"""
