"""Leases: which replica decides.

Reading order: `lease` (one Lease), `family` (the Leases of a program, divided among its replicas), `fence` (stops writes
when a Lease may be lost, and the clock of the time in which it is held).

What does not belong here: what a component does with its Leases.
"""
