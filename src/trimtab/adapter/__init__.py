"""Serves the custom and external metrics API groups."""
