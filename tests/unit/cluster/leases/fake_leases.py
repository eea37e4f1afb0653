"""A server of Leases, and a component that is told of its shards."""

from collections.abc import Callable

from tests.unit.cluster.fake_api import Answer, Incoming
from tests.unit.cluster.fake_objects import FakeObjects

LEASES = "/apis/coordination.k8s.io/v1/namespaces/trimtab/leases"


class FakeLeases(FakeObjects):
    """A server of Leases that lists them, too."""

    def _serve(self, request: Incoming) -> Answer:
        if request.method == "GET" and request.path == LEASES:
            items = [lease for path, lease in self.by_path.items() if path.startswith(LEASES)]
            return Answer(200, {"metadata": {"resourceVersion": str(self.version)}, "items": items})
        return super()._serve(request)

    def hold(self, name, holder):
        """Let another process hold a Lease for long."""
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": 600,
            "renewTime": "2026-01-01T00:00:10.000000Z",
        }
        metadata = {"name": name, "namespace": "trimtab", "uid": "u"}
        self._keep(f"{LEASES}/{name}", {"metadata": metadata, "spec": spec}, 200)

    def holder(self, name):
        lease = self.by_path.get(f"{LEASES}/{name}")
        return lease["spec"]["holderIdentity"] if lease else ""


class User:
    """A component that remembers what it was told, and may be busy."""

    def __init__(self, changed: Callable[[int, bool], None] = lambda _shard, _gained: None) -> None:
        self.told: list[tuple[str, int]] = []
        self.busy: set[int] = set()
        self._changed = changed

    def shard_gained(self, shard):
        self.told.append(("gained", shard))
        self._changed(shard, True)

    def shard_lost(self, shard):
        self.told.append(("lost", shard))
        self._changed(shard, False)

    def is_shard_busy(self, shard):
        return shard in self.busy

    @property
    def shards(self):
        held: set[int] = set()
        for change, shard in self.told:
            (held.add if change == "gained" else held.discard)(shard)
        return held
