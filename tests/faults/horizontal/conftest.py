"""The stages of the scenarios, for faults of the whole operator."""

from tests.scenarios.horizontal.conftest import play, play_lab

__all__ = ["play", "play_lab"]
