"""The metrics APIs of a lab: what its pods use, and custom and external values.

Reading order: `values` (the series of custom and external metrics), `apis` (metrics.k8s.io, and GET requests of all three APIs),
`server` (the APIs on a socket, for clusters other than the lab).
"""
