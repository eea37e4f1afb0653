"""`trimtab explain`: why an autoscaler does what it does, or would do.

Read `command` first. It has the options and prints the explanation; `arguments` reads what it is called with. An HPA is explained
by a decision that is made on the spot (`hpas`) or by the operator's (`operator_decisions`), a VPA or a pod by its sizes (`sizes`).
`notes` says where the operator does otherwise.

What does not belong here: the sentences of explanations, which are in `decide.horizontal.explain` and `decide.vertical.explain`.
"""
