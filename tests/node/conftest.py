"""A cluster with a real node for all tests, and a namespace for each."""

import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.node.stage import Stage
from tools.node import machine
from tools.node.cluster import NodeCluster

NODES = {"node-1": "3G", "node-2": "2G"}
"""The nodes with their memory. They differ in size, for DaemonSets that are sized by node."""
LATER = "node-3"
"""A node that a test may start and lose."""

_FAILED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a test failed, for its fixtures."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(scope="session")
def node_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    """A control plane, two real nodes and Trimtab."""
    if missing := machine.missing_programs():
        pytest.skip(f"a real node needs {', '.join(missing)}")
    with NodeCluster(Path(tmp_path_factory.mktemp("node")), NODES, later=[LATER]) as cluster:
        yield cluster


@pytest.fixture
def stage(node_cluster: NodeCluster, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A namespace of the test's own, which is deleted after the test."""
    name = (
        re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")[:40].strip("-")
    )
    yield Stage(node_cluster, name)
    if request.node.stash.get(_FAILED, False):
        print(f"what was seen is in {node_cluster.keep_evidence(name)}")  # noqa: T201 - of a failure
    node_cluster.control_plane.kubectl("delete", "namespace", name, "--wait=false")
