"""The load on a cluster's pods, as data, and the usage that it causes.

Nothing here does I/O on a cluster.
Reading order: `curves` (values over time), `plan` (the document that users write), `usage` (running pods, shares, noise, queues, and
the usage of each container), `load` (all loads at run time, which users can change).
"""
