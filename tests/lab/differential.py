"""The same spoilt requests to the lab and to the real kube-apiserver: is each taken by both or refused by both?

    python -m tests.lab.differential [COUNT] [SEED]

needs the real programs (see `make test-real`) and prints every difference.
"""

import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.spoilt import BUILT_IN, OWN, Spoilt, spoilt_request
from tests.scenarios.clocks import ShiftedClock
from tests.support.cluster import as_admin
from tools.peers.cluster import RealCluster
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.errors import TransportError
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Request, Response, Transport
from trimtab.model.crds import all_crds
from trimtab_lab.apiserver.server import Server

#: What every request carries: nothing is stored, so that both servers stay as they were.
QUERY = (("dryRun", "All"), ("fieldManager", "suite"))
FORCE = (("force", "true"),)
FAILED = 599
"""In place of a status: kube-apiserver ends the connection where it stumbles over a request."""
NAMESPACE = "spoilt"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass
class Comparison:
    """How many requests were answered with the same class of status, and which were not."""

    same: int = 0
    #: Refused with a 4xx where kube-apiserver fails with a 5xx: a bad request is never a failure of ours.
    kinder: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """Return how many requests were sent."""
        return self.same + self.kinder + len(self.differences)

    def __str__(self) -> str:
        return (
            f"status class as kube-apiserver's {self.same} / {self.tried} spoilt requests; "
            f"{self.kinder} refused where it fails, {len(self.differences)} taken by one only"
        )


async def compare(lab: Transport, real: Transport, requests: Iterable[Spoilt]) -> Comparison:
    """Send each request to both servers, which have the objects already."""
    found = Comparison()
    for request in requests:
        ours, theirs = await _send(lab, request), await _send(real, request)
        if ours.status // 100 == theirs.status // 100:
            found.same += 1
        elif (ours.status // 100, theirs.status // 100) == (4, 5):
            found.kinder += 1
        else:
            found.differences.append(f"{request}\n    lab {_told(ours)}\n    real {_told(theirs)}")
    return found


def spoilt_requests(count: int, seed: int) -> list[Spoilt]:
    """Return requests about built-in objects and about ours."""
    chance = random.Random(seed)
    return [spoilt_request(chance, number, BUILT_IN + OWN) for number in range(count)]


async def prepare(transport: Transport) -> None:
    """Make the definitions, a namespace, and in it the objects that are going to be spoilt."""
    for crd in all_crds():
        await _create(transport, CRDS, crd)
    await _create(transport, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for path, obj in BUILT_IN + OWN:
        # An owner that is not there would have the lab's garbage collector take the object away.
        await _create(transport, path, {**obj, "metadata": {"name": "a"}})


async def _create(transport: Transport, path: str, obj: object) -> None:
    body = json.dumps(obj).encode()
    for _ in range(30):
        made = await transport.request(_request("POST", path, "application/json", body, ()))
        if made.status in (201, 409):
            return
        await asyncio.sleep(0.1)  # a definition is served a moment after it was made
    raise RuntimeError(f"{path} cannot be prepared: {_told(made)}")


async def _send(transport: Transport, spoilt: Spoilt) -> Response:
    query = QUERY + FORCE if "apply" in spoilt.media else QUERY
    try:
        return await transport.request(_request(spoilt.method, spoilt.path, spoilt.media, spoilt.body, query))
    except TransportError as error:
        return Response(FAILED, {}, str(error).encode())


def _request(method: str, path: str, media: str, body: bytes, query: tuple[tuple[str, str], ...]) -> Request:
    headers = {"content-type": media, "accept": "application/json"}
    filled = body.replace(b"{ns}", NAMESPACE.encode())
    return Request(method, path.replace("{ns}", NAMESPACE), query, headers, filled)


def _told(response: Response) -> str:
    try:
        message = json.loads(response.body).get("message", "")
    except ValueError:
        message = response.body.decode(errors="replace")
    return f"{response.status}: {message[:300]}"


async def differ(cluster: RealCluster, count: int, seed: int) -> Comparison:
    """Put up a lab beside a real cluster and compare them."""
    clock = ShiftedClock()
    async with Server(clock, seed=1) as server:
        lab = as_admin(server)
        real = HttpTransport(clock, load_kubeconfig(clock, str(cluster.kubeconfig), environ={}))
        try:
            for each in (lab, real):
                await prepare(each)
            return await compare(lab, real, spoilt_requests(count, seed))
        finally:
            await real.request(
                _request("DELETE", f"/api/v1/namespaces/{NAMESPACE}", "application/json", b"", ())
            )
            await real.close()


def main(arguments: list[str]) -> None:
    """Compare as many as asked, 10,000 by default, and print what differs."""
    count, seed = (*map(int, arguments), *(10_000, 0)[len(arguments) :])
    with tempfile.TemporaryDirectory() as folder, RealCluster(Path(folder)) as cluster:
        found = asyncio.run(differ(cluster, count, seed))
    sys.stdout.write("".join(f"{difference}\n" for difference in found.differences) + f"{found}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
