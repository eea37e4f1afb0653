"""Fixtures for every tier."""

import json
import logging
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.watchdog import Watchdog
from tools.peers import cluster as peers
from trimtab.clock import VirtualClock

# A slow machine is not a wrong answer: no property fails because of the time it took.
settings.register_profile("trimtab", deadline=None)
settings.load_profile("trimtab")


def pytest_configure(config: pytest.Config) -> None:
    """Watch every test, with more patience on a busy machine."""
    config.pluginmanager.register(Watchdog(), "watchdog")


@pytest.fixture
def clock() -> VirtualClock:
    """Return the clock of a test `in_virtual_time`."""
    return VirtualClock()


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
def _leave_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves nodes or aggregated APIs on the shared cluster, and delete them.

    A DaemonSet of a later test would wait for the nodes. An API that nobody serves spoils discovery for every later test.
    What a fixture of the module keeps for all its tests is there before.
    """
    if "real_cluster" not in request.fixturenames:
        yield
        return
    cluster = request.getfixturevalue("real_cluster")
    before = set(_shared(cluster))
    yield
    left = [path for path in _shared(cluster) if path not in before]
    for path in left:
        _call(cluster, path, "DELETE")
    assert not left, f"the test left objects on the shared cluster: {', '.join(left)}"


def _shared(cluster: peers.RealCluster) -> Iterator[str]:
    """Yield the paths of the nodes and of the APIs that other servers serve."""
    for node in _call(cluster, "/api/v1/nodes")["items"]:
        yield f"/api/v1/nodes/{node['metadata']['name']}"
    kind = "/apis/apiregistration.k8s.io/v1/apiservices"
    for api in _call(cluster, kind)["items"]:
        if "service" in api["spec"]:
            yield f"{kind}/{api['metadata']['name']}"


def _call(cluster: peers.RealCluster, path: str, method: str = "GET") -> Any:
    asked = urllib.request.Request(
        f"{cluster.url}{path}",
        method=method,
        headers={"authorization": f"Bearer {cluster.tokens['admin']}"},
    )
    trusted = ssl.create_default_context(cafile=cluster.directory / "ca.crt")
    with urllib.request.urlopen(asked, context=trusted) as answer:
        return json.load(answer)
