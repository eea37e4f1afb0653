"""A real node with the programs of other projects, and Trimtab in place of the cluster's HPA controller."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.node import oci
from tools.node.cluster import NEIGHBOURS, NodeCluster
from tools.peers import build

IMAGE = "localhost/neighbours:1"
"""The image of all programs of other projects; each is a file in `/`."""
NATIVE = ("settings.native-hpas=true",)
"""The values with which Trimtab is installed in place of the cluster's HPA controller."""


@pytest.fixture(scope="session")
def neighbour_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    """A control plane without an HPA controller, one node, metrics-server, and Trimtab for all HPAs."""
    if missing := [name for name in NEIGHBOURS if build.find(name) is None]:
        pytest.skip(f"{', '.join(missing)} not built; `make test-neighbours` builds them")
    directory = Path(tmp_path_factory.mktemp("neighbours"))
    archive = directory / "neighbours.tar"
    oci.write_images([oci.Image(IMAGE, {name: build.place_of(name) for name in NEIGHBOURS})], archive)
    with NodeCluster(directory, {"node-1": "4G"}, archive) as cluster:
        cluster.beside.start_trimtab(NATIVE, programs=["horizontal"])
        yield cluster
