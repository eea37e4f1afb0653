"""How many pods a workload should have, and why."""
