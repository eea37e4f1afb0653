"""Which VPA controls a pod: the question that recommender, updater and admission answer alike.

Belongs here: owners, scopes, claims and roles. Usage and sizes do not.

Reading order: `controllers` (the topmost owner of a pod), `scope` (the part of a workload that a VPA claims), `claims` (the VPAs of
a workload, and what their recommendations are good for), `control` (who sizes a pod, who learns from it, or that this is not known),
`attribution` (the aggregate that holds the samples). `lease_holder` and `role_labels` give pods the role labels that scopes select.
"""
