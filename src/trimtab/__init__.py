"""Trimtab: a Kubernetes pod autoscaler that counts the right pods and shows why."""

__version__ = "0.1.0"
