"""How big a workload's pods should be, by role, and why."""
