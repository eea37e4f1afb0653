"""The files of a new plug-in: a package, a function that works, its tests, and a backtest where there can be one."""

import importlib.util
import keyword
import re
import sys
from contextlib import suppress
from importlib import metadata
from typing import Final, NamedTuple

from trimtab.plugins.kinds import PluginKind

KINDS: Final = {
    "pod-filter": PluginKind.POD_FILTER,
    "replica-policy": PluginKind.REPLICA_POLICY,
    "metric-source": PluginKind.METRIC_SOURCE,
    "estimator": PluginKind.ESTIMATOR,
}
"""The kinds by the word that `trimtab plugin new` takes."""


class _Template(NamedTuple):
    function: str
    test: str
    spec: str = ""
    """What an autoscaler says to use the plug-in; empty if no backtest can show it."""
    kind: str = "hpa"
    """The autoscaler that names it."""


_TEMPLATES: Final = {
    PluginKind.POD_FILTER: _Template(
        '''"""A pod filter for Trimtab."""

from collections.abc import Mapping

from trimtab.plugins import PodFilterInput


def {function}(seen: PodFilterInput) -> Mapping[str, str]:
    """Return the pods that do not count, by name, with the reason of each."""
    return {{pod.name: "it is being deleted" for pod in seen.pods if pod.is_deleted}}
''',
        """from {module} import {function}
from trimtab.plugins import FilterPod, FilterTarget, PodFilterInput
from trimtab.plugins.testing import check_pod_filter


def test_a_pod_that_is_deleted_does_not_count():
    pods = (FilterPod(name="web-1"), FilterPod(name="web-2", is_deleted=True))
    target = FilterTarget(namespace="shop", kind="Deployment", name="web")
    seen = PodFilterInput(pods=pods, target=target)
    assert {function}(seen) == {{"web-2": "it is being deleted"}}


def test_it_keeps_the_protocol():
    check_pod_filter({function})
""",
        "  selectionStrategy: {name}\n",
    ),
    PluginKind.REPLICA_POLICY: _Template(
        '''"""A replica policy for Trimtab."""

from trimtab.plugins import ReplicaPolicyInput, ReplicaProposal


def {function}(seen: ReplicaPolicyInput) -> ReplicaProposal:
    """Ask for at least as many replicas as the parameters say."""
    least = seen.parameters.get("least", 2)
    return ReplicaProposal(replicas=least, reason=f"never fewer than {{least}}")
''',
        """from {module} import {function}
from trimtab.plugins import ReplicaPolicyInput
from trimtab.plugins.testing import check_replica_policy


def test_it_asks_for_the_least():
    seen = ReplicaPolicyInput(
        namespace="shop", name="web", replicas=1, min_replicas=1, max_replicas=9, parameters={{"least": 3}}
    )
    proposal = {function}(seen)
    assert (proposal.replicas, proposal.reason) == (3, "never fewer than 3")


def test_it_keeps_the_protocol():
    check_replica_policy({function}, {{"least": 3}})
""",
        "  replicaPolicies:\n  - name: {name}\n    parameters: {{least: 3}}\n",
    ),
    PluginKind.METRIC_SOURCE: _Template(
        '''"""A metric source for Trimtab."""

from trimtab.plugins import DeclinedError, MetricRequest, MetricValue


async def {function}(seen: MetricRequest) -> list[MetricValue]:
    """Return the series of the metric that is requested."""
    if seen.metric != "my_metric":
        raise DeclinedError(f"{{seen.metric}} is not known")
    return [MetricValue(value=1, labels=seen.labels)]
''',
        """import asyncio

from {module} import {function}
from trimtab.plugins import MetricRequest
from trimtab.plugins.testing import check_metric_source


def test_it_answers_its_metric():
    (series,) = asyncio.run({function}(MetricRequest(namespace="shop", metric="my_metric")))
    assert series.value == 1


def test_it_keeps_the_protocol():
    check_metric_source({function}, ["my_metric"])
""",
    ),
    PluginKind.ESTIMATOR: _Template(
        '''"""An estimator for Trimtab."""

from trimtab.plugins import Amounts, Estimate, EstimatorInput


def {function}(seen: EstimatorInput) -> Estimate:
    """Recommend the 99th percentile of CPU, and Trimtab's own amounts of all else."""
    if not seen.histograms["cpu"].ends:
        return Estimate(amounts={{}}, reason="no usage yet")
    cores = seen.histograms["cpu"].percentile(0.99)
    return Estimate(
        amounts={{"cpu": Amounts(lower=cores, target=cores, upper=2 * cores)}}, reason="the 99th percentile"
    )
''',
        """from {module} import {function}
from trimtab.plugins import EstimatorInput, UsageHistogram
from trimtab.plugins.testing import check_estimator


def test_without_usage_the_amounts_of_trimtab_stay():
    unused = {{"cpu": UsageHistogram(), "memory": UsageHistogram()}}
    seen = EstimatorInput(namespace="shop", name="web", container="main", now=0.0, histograms=unused)
    assert {function}(seen).amounts == {{}}


def test_it_keeps_the_protocol():
    check_estimator({function})
""",
        "  recommenders: [{{name: {name}}}]\n",
        "vpa",
    ),
}

_PROJECT: Final = """[project]
name = "{package}"
version = "0.1.0"
description = "The {label} {name} for Trimtab"
requires-python = ">=3.11"
dependencies = ["trimtab"]

[project.entry-points."{group}"]
"{name}" = "{module}:{function}"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]
"""

_HPA: Final = """apiVersion: autoscaling.trimtab.dev/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 20
  metrics:
  - type: External
    external: {metric: {name: requests}, target: {type: AverageValue, averageValue: "100"}}
"""

_VPA: Final = """apiVersion: autoscaling.trimtab.dev/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
"""

_BACKTEST: Final = '''"""Compare an autoscaler with the plug-in and without it on recorded load: `python backtest.py`.

Replace {kind}.yaml and {kind}-with-plugin.yaml by yours, and load.csv by `trimtab trace` of your Prometheus. The same on the command
line: `trimtab simulate {kind}.yaml {kind}-with-plugin.yaml --trace load.csv --plugins {name}`.
"""

from pathlib import Path

import trimtab

HERE = Path(__file__).parent

if __name__ == "__main__":
    candidates = {{
        "without": trimtab.read_autoscaler(HERE / "{kind}.yaml"),
        "with {name}": trimtab.read_autoscaler(HERE / "{kind}-with-plugin.yaml"),
    }}
    print(trimtab.simulate(candidates, trimtab.Trace.from_csv(HERE / "load.csv"), plugins=["{name}"]))
'''


_FILES: Final = frozenset({"backtest", "conftest"})
"""Modules that are another file of the new package, or that pytest reads as its configuration."""


def name_problem(name: str) -> str:
    """Return why no package can be made for a name, or an empty text. Nothing is imported."""
    module = _words(name)
    package = module.replace("_", "-")
    if keyword.iskeyword(module):
        return f"its module would be {module}, which is a keyword of Python"
    if module in sys.stdlib_module_names:
        return f"its module would be {module}, which is one of Python's standard library"
    if module in _FILES:
        return f"its module would be {module}.py, which is another file of such a package"
    with suppress(metadata.PackageNotFoundError):
        return f"its package would be {package}, and {package} {metadata.version(package)} is installed"
    found = importlib.util.find_spec(module)
    if found is not None:
        place = found.origin or next(iter(found.submodule_search_locations or ()), "")
        return f"its module would be {module}, which exists already: {place}"
    return ""


def folder_of(name: str) -> str:
    """Return the folder of a new plug-in: `example.com/NotDraining` goes to `not-draining`."""
    return _words(name).replace("_", "-")


def files_of(kind: PluginKind, name: str) -> dict[str, str]:
    """Return the files of a new plug-in by their names."""
    module, template = _words(name), _TEMPLATES[kind]
    values = {
        "name": name,
        "module": module,
        "function": f"{module}_plugin",
        "package": module.replace("_", "-"),
        "group": kind.value,
        "label": kind.label,
        "kind": template.kind,
    }
    files = {
        "pyproject.toml": _PROJECT.format(**values),
        f"{module}.py": template.function.format(**values),
        f"test_{module}.py": template.test.format(**values),
    }
    if template.spec:
        files["backtest.py"] = _BACKTEST.format(**values)
        plain = _VPA if template.kind == "vpa" else _HPA
        files[f"{template.kind}.yaml"] = plain
        files[f"{template.kind}-with-plugin.yaml"] = plain + template.spec.format(**values)
        files["load.csv"] = _usage() if template.kind == "vpa" else _load()
    return files


def _words(name: str) -> str:
    """Return the name without its domain as a module: `NotDraining` is `not_draining`."""
    plain = name.partition("/")[2]
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    module = re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")
    return module if module[0].isalpha() else f"plugin_{module}"


def _load() -> str:
    """Return 1 hour of load that doubles for 20 minutes."""
    rows = [f"2026-01-01T00:{minute:02d}:00Z,{400 if 20 <= minute < 40 else 200}" for minute in range(60)]
    return "\n".join(["time,requests", *rows]) + "\n"


def _usage() -> str:
    """Return 2 days of usage with a peak in the afternoon, in cores and bytes."""
    rows = [
        f"2026-01-0{1 + hour // 24}T{hour % 24:02d}:00:00Z,{0.8 if 12 <= hour % 24 < 18 else 0.2},300000000"
        for hour in range(48)
    ]
    return "\n".join(["time,cpu,memory", *rows]) + "\n"
