"""The Prometheus that `trimtab trace` is tested with."""

from tests.unit.cli.commands.test_trace import prometheus

__all__ = ["prometheus"]
