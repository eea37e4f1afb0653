"""Leader election and sharding by Leases.

Reading order: `creation` (the owner of a Lease), `election` (one Lease), `fence` (stops writes when the Lease may be lost), `epoch` (times of holding a
Lease, and clocks of holders), `shards` (many Leases divided among replicas).

What does not belong here: what a component does with its lease.
"""
