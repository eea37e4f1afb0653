"""The load plan: a document with the load of each workload and with series of metrics.

A plan is a JSON or YAML document:

    apiVersion: lab.trimtab.dev/v1
    kind: LoadPlan
    seed: 7
    workloads:
    - name: web
      cpu: {type: daily, low: 200m, high: "4", peakHour: 14}
      memory: {base: 64Mi, perCore: 128Mi}
      noise: 0.05
    - name: db
      cpu: {type: constant, value: "2"}
      share: {type: leader, share: 0.8}
      election: {every: 600}
    - name: chat
      metrics: {open_websockets: {type: ramp, start: "100", end: "900", lasts: 600}}
    - name: worker
      queue: {metric: queue_length, labels: {queue: mail}, arrivals: {type: constant, value: "20"}, rate: "5"}
    series:
    - {name: requests_per_second, value: {type: steps, steps: [{at: 0, value: "10"}, {at: 300, value: "90"}]}}
"""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from trimtab.model.json import wire
from trimtab.model.json.wire import Wire
from trimtab.model.metrics_api import DescribedObject
from trimtab.model.quantity import Quantity
from trimtab_lab.load.curves import Curve, Recorded

API_VERSION = "lab.trimtab.dev/v1"
KIND = "LoadPlan"
_ZERO = Quantity.from_int(0)


class PlanError(ValueError):
    """A plan is invalid. The message says what is wrong and where."""


class Even(Wire, frozen=True, tag="even", tag_field="type"):
    """Every ready pod has the same share."""


class Leader(Wire, frozen=True, tag="leader", tag_field="type"):
    """The leader has `share` of the load, and the other pods have equal parts of the rest.

    The leader is the pod with `label`=`value`, or the holder of `lease`. Without a leader all shares are equal.
    """

    share: float = 0.8
    label: str = "role"
    value: str = "leader"
    lease: str = ""


class HotShard(Wire, frozen=True, tag="hotShard", tag_field="type"):
    """The pod number `ordinal`, by name from 0, has `weight` times the share of each other pod."""

    ordinal: int = 0
    weight: float = 5.0


Share = Even | Leader | HotShard


class MemoryLoad(Wire, frozen=True):
    """Memory of one container: base, per core, growth since its start, and share of a total."""

    base: Quantity = Quantity.parse("64Mi")
    per_core: Quantity = _ZERO
    growth_per_hour: Quantity = _ZERO
    total: Curve | None = None


class Queue(Wire, frozen=True):
    """A queue of items: `arrivals` per second, of which each ready pod does `rate` per second.

    The backlog is an external metric. `cpu_per_item` is in CPU seconds.
    """

    metric: str
    arrivals: Curve
    rate: Quantity
    labels: dict[str, str] = {}
    cpu_per_item: Quantity = _ZERO
    backlog: float = 0.0


class OtherContainer(Wire, frozen=True):
    """The constant usage of a container beside the main one."""

    cpu: Quantity = _ZERO
    memory: Quantity = _ZERO


class Election(Wire, frozen=True):
    """The election of a leader among the pods, shown in a label of each pod.

    If `lease` is set, a Lease shows it, too. The leader changes when it is not ready, and every `every` seconds if that is not 0.
    """

    label: str = "role"
    leader: str = "leader"
    follower: str = "follower"
    lease: str = ""
    every: float = 0.0


class WorkloadLoad(Wire, frozen=True):
    """The load of one workload: `cpu` in total over its ready pods, `cpu_per_pod` for each of them.

    `metrics` are custom metrics of the pods by name, each in total over the ready pods.
    """

    name: str
    namespace: str = "default"
    workload: str = ""
    container: str = ""
    cpu: Curve | None = None
    cpu_per_pod: Curve | None = None
    idle_cpu: Quantity = Quantity.parse("1m")
    share: Share = Even()
    memory: MemoryLoad = MemoryLoad()
    queue: Queue | None = None
    election: Election | None = None
    metrics: dict[str, Curve] = {}
    noise: float = 0.0
    others: dict[str, OtherContainer] = {}

    @property
    def target(self) -> tuple[str, str]:
        """Return namespace and name of the workload."""
        return (self.namespace, self.workload or self.name)


class MetricCurve(Wire, frozen=True):
    """A metric that follows a curve: an object metric if `object` is set, else an external one."""

    name: str
    value: Curve
    namespace: str = ""
    labels: dict[str, str] = {}
    object: DescribedObject | None = None
    noise: float = 0.0


class LoadPlan(Wire, frozen=True):
    """All loads and series of a cluster."""

    api_version: str = API_VERSION
    kind: str = KIND
    seed: int = 0
    workloads: tuple[WorkloadLoad, ...] = ()
    series: tuple[MetricCurve, ...] = ()


NO_LOAD = LoadPlan()


def read_plan(path: Path) -> LoadPlan:
    """Read a plan and its CSV files."""
    try:
        return parse_plan(path.read_text(encoding="utf-8"), path.parent)
    except OSError as problem:
        raise PlanError(f"{path}: {problem.strerror}") from problem
    except PlanError as problem:
        raise PlanError(f"{path}: {problem}") from problem


def parse_plan(text: str, folder: Path | None = None) -> LoadPlan:
    """Parse a plan from JSON or YAML. Its CSV files must be in `folder`."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise PlanError(f"not valid YAML: {problem}") from problem
    if not isinstance(data, dict) or (data.get("apiVersion"), data.get("kind")) != (API_VERSION, KIND):
        raise PlanError(f"a load plan starts with apiVersion: {API_VERSION} and kind: {KIND}")
    try:
        plan = wire.convert(data, LoadPlan)
    except wire.WireError as problem:
        raise PlanError(str(problem)) from problem
    loaded: LoadPlan = _with_points(plan, folder)
    return loaded


def _with_points(value: Any, folder: Path | None) -> Any:
    """Return a part of a plan in which recorded curves have the points of their files."""
    if isinstance(value, Recorded):
        return _load_points(value, folder) if value.file else value
    if isinstance(value, Wire):
        fields = {name: _with_points(getattr(value, name), folder) for name in value.__struct_fields__}
        return replace(value, **fields)
    if isinstance(value, dict):
        return {name: _with_points(child, folder) for name, child in value.items()}
    return tuple(_with_points(child, folder) for child in value) if isinstance(value, tuple) else value


def _load_points(curve: Recorded, folder: Path | None) -> Recorded:
    if folder is None or Path(curve.file).name != curve.file:
        raise PlanError(f"recorded curve: the file {curve.file!r} must lie beside the plan")
    with (folder / curve.file).open(encoding="utf-8", newline="") as lines:
        return replace(curve, points=read_points(lines, curve.time_column, curve.value_column))


def read_points(lines: Iterable[str], time_column: str, value_column: str) -> tuple[tuple[float, float], ...]:
    """Read the points of a CSV with a header, sorted by time in seconds."""
    points: list[tuple[float, float]] = []
    for number, row in enumerate(csv.DictReader(lines), 2):
        try:
            points.append((float(row[time_column]), float(row[value_column])))
        except (KeyError, TypeError, ValueError) as problem:
            raise PlanError(
                f"CSV line {number}: columns {time_column!r} and {value_column!r} must be numbers ({problem})"
            ) from problem
    return tuple(sorted(points))
