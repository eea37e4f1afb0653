"""The stages of the scenarios, for faults of the whole operator."""

from contextlib import AbstractAsyncContextManager

import pytest

from tests.scenarios.horizontal.conftest import Play, play_on_lab, play_on_real, stage_on_lab
from tests.scenarios.horizontal.stage import Stage
from trimtab.clock import VirtualClock


@pytest.fixture
def stage(clock: VirtualClock) -> AbstractAsyncContextManager[Stage]:
    """Return a stage on the lab, for tests in virtual time."""
    return stage_on_lab(clock)


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
def both(request: pytest.FixtureRequest) -> Play:
    """Play on the lab and, with `-m real`, on the real kube-apiserver."""
    if request.param == "lab":
        return play_on_lab
    cluster = request.getfixturevalue("real_cluster")
    return lambda scenario: play_on_real(cluster, scenario)
