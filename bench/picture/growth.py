"""How cost grows with HPAs, pods and namespaces: the loads to measure, and the exponent that fits."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.picture.api import Json
from bench.picture.generator import Load

AXES = ("HPAs", "pods", "namespaces")


@dataclass(frozen=True)
class Point:
    """A load on one axis; the other sizes stay."""

    axis: str
    size: int
    load: Load

    def figures(self) -> Json:
        """Return what a record says of the point."""
        return {"axis": self.axis, "size": self.size, "hpas": self.load.workloads}


POINTS = (
    *(Point("HPAs", hpas, Load(hpas, 10, 50)) for hpas in (250, 1000, 2000)),
    *(Point("pods", pods, Load(250, pods, 50)) for pods in (10, 120)),
    *(Point("namespaces", spaces, Load(500, 10, spaces)) for spaces in (1, 400)),
)


def exponent(points: Iterable[tuple[float, float]]) -> float | None:
    """Return the slope of the straight line through the logarithms, least squares."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points if size > 0 and cost > 0]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else None


def costs(figures: Sequence[Json], axis: str) -> list[tuple[float, float]]:
    """Return size and CPU-milliseconds of one round over all HPAs, for the points of an axis."""
    return [
        (float(one["size"]), float(one["controller_ms"]) * float(one["hpas"]))
        for one in figures
        if one.get("axis") == axis and one.get("controller_ms")
    ]
