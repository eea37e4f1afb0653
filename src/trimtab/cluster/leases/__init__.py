"""Leases: which replica decides.

Reading order: `lease` (one Lease), `family` (the Leases of a program, divided among its replicas), `fence` (stops writes
when a Lease may be lost), `epoch` (times of holding a Lease, and clocks of holders).

What does not belong here: what a component does with its Leases.
"""
