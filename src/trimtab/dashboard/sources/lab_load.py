"""The lab's loads as controls of the page."""

from collections.abc import Sequence

from trimtab.dashboard.pages.views import LoadView
from trimtab.lab.load.load import Load as Lab
from trimtab.lab.load.plan import WorkloadLoad


class LabLoads:
    """Turns the loads of an embedded cluster up and down (`EmbeddedCluster.load`)."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def loads(self) -> Sequence[LoadView]:
        """Return every load with its present factor, those of one namespace side by side."""
        return sorted(
            (self._told(name) for name in self._lab.names), key=lambda one: ("/" not in one.title, one.title)
        )

    async def set_factor(self, name: str, factor: float) -> None:
        """Multiply a load by `factor`; KeyError if there is none of that name."""
        if name not in self._lab.names:
            raise KeyError(name)
        self._lab.scale(name, factor)

    def _told(self, name: str) -> LoadView:
        one = self._lab.get(name)
        title, detail = (name, "the value of this metric") if one is None else _words(one)
        return LoadView(name=name, title=title, factor=self._lab.factor(name), detail=detail)


def _words(one: WorkloadLoad) -> tuple[str, str]:
    namespace, workload = one.target
    if one.queue is not None:
        return f"{namespace}/{workload}", f"what arrives at its queue {one.queue.metric}"
    return f"{namespace}/{workload}", "the CPU that its work takes"
