"""The recorded answers that the lab is held to are still those of the real kube-apiserver."""

import asyncio
import itertools
import threading

import pytest

from tests.lab.answers import APPLY, Step
from tests.lab.recording import CONTROLLERS, record, recorded_of_the_release, sender
from tests.lab.scripts import SCRIPTS
from tests.lab.scripts.builders import config_map
from tests.lab.scripts.objects import WATCHES
from tools.peers.cluster import RealCluster

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def quiet_cluster(real_cluster: RealCluster) -> RealCluster:
    """A cluster without the controllers that would touch what the scripts create."""
    real_cluster.stop("kube-controller-manager")
    real_cluster.start_controllers(CONTROLLERS)
    return real_cluster


@pytest.mark.parametrize("number", range(len(SCRIPTS)), ids=[script.name for script in SCRIPTS])
def test_the_recording_is_what_the_real_server_answers(real_cluster: RealCluster, number: int):
    script = SCRIPTS[number]
    assert record(real_cluster, script, number) == recorded_of_the_release()[script.name]


def test_writes_elsewhere_do_not_change_what_a_watch_is_recorded_as(real_cluster: RealCluster):
    """They did: the server then sends one more bookmark, which beside other tests failed the recording above."""
    is_over = threading.Event()
    writer = threading.Thread(target=lambda: asyncio.run(write_elsewhere(real_cluster, is_over)))
    writer.start()
    try:
        assert record(real_cluster, WATCHES, len(SCRIPTS)) == recorded_of_the_release()[WATCHES.name]
    finally:
        is_over.set()
        writer.join()


async def write_elsewhere(cluster: RealCluster, is_over: threading.Event) -> None:
    send, path = sender(cluster), "/api/v1/namespaces/default/configmaps/elsewhere"
    for number in itertools.count():
        body = config_map("elsewhere", number=str(number))
        await send(Step("PATCH", path, body, query="fieldManager=elsewhere", media=APPLY), "default", "")
        if is_over.is_set():
            return
