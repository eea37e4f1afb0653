"""What can go wrong while a metric is read."""


class MetricsError(Exception):
    """A metrics API gave no usable answer; the message says which and why."""
