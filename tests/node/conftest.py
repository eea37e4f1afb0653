"""A cluster with a real node for all tests, and a namespace for each."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.stage import Stage
from tools.node import machine
from tools.node.cluster import NodeCluster

NODES = {"node-1": "3G", "node-2": "2G"}
"""The nodes with their memory. They differ in size, for DaemonSets that are sized by node."""


@pytest.fixture(scope="session")
def node_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    """A control plane, two real nodes and Trimtab."""
    if missing := machine.missing_programs():
        pytest.skip(f"a real node needs {', '.join(missing)}")
    with NodeCluster(Path(tmp_path_factory.mktemp("node")), NODES) as cluster:
        yield cluster


@pytest.fixture
def stage(node_cluster: NodeCluster, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A namespace of the test's own, which is deleted after the test."""
    name = (
        re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")[:40].strip("-")
    )
    stage = Stage(node_cluster, name)
    yield stage
    node_cluster.control_plane.kubectl("delete", "namespace", name, "--wait=false")
