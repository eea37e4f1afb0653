"""The loads of the lab, which the page can change."""

from collections.abc import Sequence

from trimtab.dashboard.pages.views import LoadView
from trimtab_lab.load.load import Load
from trimtab_lab.load.plan import WorkloadLoad


class LabLoads:
    """Changes the loads of an embedded cluster (`EmbeddedCluster.load`)."""

    def __init__(self, lab: Load) -> None:
        self._lab = lab

    def loads(self) -> Sequence[LoadView]:
        """Return every load with its current factor, sorted by namespace."""
        return sorted(
            (self._view(name) for name in self._lab.names),
            key=lambda load: ("/" not in load.title, load.title),
        )

    async def set_factor(self, name: str, factor: float) -> None:
        """Multiply a load by `factor`. Raise KeyError if there is no such load."""
        if name not in self._lab.names:
            raise KeyError(name)
        self._lab.scale(name, factor)

    def _view(self, name: str) -> LoadView:
        load = self._lab.get(name)
        title, detail = (name, "the value of this metric") if load is None else _describe(load)
        return LoadView(name=name, title=title, factor=self._lab.factor(name), detail=detail)


def _describe(load: WorkloadLoad) -> tuple[str, str]:
    namespace, workload = load.target
    if load.queue is not None:
        return f"{namespace}/{workload}", f"what arrives at its queue {load.queue.metric}"
    return f"{namespace}/{workload}", "the CPU that its work takes"
