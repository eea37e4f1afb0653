"""Readers of the metrics APIs and of Prometheus history. No decisions."""
