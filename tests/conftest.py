"""Fixtures for every tier."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.watchdog import Watchdog
from tools.peers import cluster as peers

# A slow machine is not a wrong answer: no property fails because of the time it took.
settings.register_profile("trimtab", deadline=None)
settings.load_profile("trimtab")


def pytest_configure(config: pytest.Config) -> None:
    """Watch every test, with more patience on a busy machine."""
    config.pluginmanager.register(Watchdog(), "watchdog")


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[peers.RealCluster]:
    """A real etcd and kube-apiserver, shared by the whole run; only for tests marked `real`."""
    why_not = peers.available()
    if why_not:
        pytest.skip(why_not)
    directory = Path(tmp_path_factory.mktemp("real"))
    with peers.RealCluster(directory) as cluster:
        yield cluster
