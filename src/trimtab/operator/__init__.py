"""The loops that run in a cluster: observe, decide, apply."""
