"""Fixtures for every tier."""

import json
import logging
import ssl
import urllib.request
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


@pytest.fixture(autouse=True)
def _leave_no_log_behind() -> Iterator[None]:
    """Undo the log of a program that a test ran: later lines would go to its closed standard error."""
    root = logging.getLogger()
    level = root.level
    yield
    for handler in [handler for handler in root.handlers if type(handler) is logging.StreamHandler]:
        root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(autouse=True)
def _leave_no_node_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves nodes on the shared cluster: a DaemonSet of a later test would wait for them.

    Nodes that a fixture of the module keeps for all its tests are there before.
    """
    before = _nodes_of(request)
    yield
    left = [name for name in _nodes_of(request) if name not in before]
    assert not left, f"the test left nodes on the shared cluster: {', '.join(left)}"


def _nodes_of(request: pytest.FixtureRequest) -> list[str]:
    if "real_cluster" not in request.fixturenames:
        return []
    return _node_names(request.getfixturevalue("real_cluster"))


def _node_names(cluster: peers.RealCluster) -> list[str]:
    asked = urllib.request.Request(
        f"{cluster.url}/api/v1/nodes", headers={"authorization": f"Bearer {cluster.tokens['admin']}"}
    )
    trusted = ssl.create_default_context(cafile=cluster.directory / "ca.crt")
    with urllib.request.urlopen(asked, context=trusted) as answer:
        return [node["metadata"]["name"] for node in json.load(answer)["items"]]
