"""Which VPA controls a pod: the question that recommender, updater and admission answer alike.

Belongs here: owners, scopes, claims and roles. Usage and sizes do not.

Reading order: `controllers` (the topmost owner of a pod), `scope` (the part of a workload that a VPA claims), `control`
(the VPA that wins a pod), `attribution` (the VPAs that receive its samples), `selector_hash` (which recommendation is
current). `lease_holder` and `role_labels` give pods the role labels that scopes select.
"""
