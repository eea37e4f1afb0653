"""Write the reference pages from the code: `python -m tools.reference` (a test says when it is due)."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from tools.command_reference import commands_page
from tools.python_reference import python_page
from tools.reasons import HORIZONTAL, VERTICAL, Reason
from tools.upstream_flags import upstream_page
from trimtab.adapter.metrics import RequestMetrics as AdapterRequests
from trimtab.adapter.metrics import health_family
from trimtab.decide.horizontal.reasons import ROWS
from trimtab.install.schema import read
from trimtab.model.crds import all_crds
from trimtab.model.feature_gates import GATES, Gate, gates_of_version
from trimtab.operator.control_loop import ControlLoopMetrics
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.prometheus import Durations, Values, cache_families, request_family
from trimtab.operator.settings.compat import KUBERNETES
from trimtab.operator.settings.settings import declared
from trimtab.operator.vertical.metrics import (
    AdmissionMetrics,
    RecommenderMetrics,
    UpdaterMetrics,
)
from trimtab.operator.vertical.recommender.quality_metrics import BulkHistogram
from trimtab.plugins.guard import Guards
from trimtab.plugins.metrics import PluginMetrics
from trimtab.plugins.registry import NO_PLUGINS

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
_GENERATED = "<!-- Made by `python -m tools.reference`; do not edit. -->\n"


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    return {
        "commands.md": _page(commands_page()),
        "flags.md": _flags(),
        "values.md": _values(),
        "events-and-conditions.md": _reasons(),
        "metrics.md": _metrics(),
        "api.md": _api(),
        "upstream-vpa-flags.md": upstream_page(),
        "feature-gates.md": _gates(),
        "python.md": _page(python_page()),
    }


def _flags() -> str:
    text = [
        "# Flags of `trimtab run`\n",
        "Every flag can be set by the environment variable beside it. Durations are written as 15s, 5m or 1h30m.",
        "Lists and maps are written with commas, or the flag is repeated: both add up.",
        "Settings that are published are on the operator's Lease, which every user of the cluster may read. `command` is `trimtab run`",
        "itself, before it makes a component.\n",
    ]
    for group, settings in itertools.groupby(declared(), key=lambda each: each.group):
        text.append(f"## {group}\n\n" + _table(_FLAG_COLUMNS, [each.row() for each in settings]))
    return _page(text)


_FLAG_COLUMNS = (
    "flag, variable", "default", "meaning, and why this default", "values", "with `--compat`", "read by", "notes",
)  # fmt: skip


def _gates() -> str:
    versions = ("", *KUBERNETES)
    tables = [gates_of_version(version) for version in versions]
    rows = [
        (f"`{name}`", *(_stage(table[name]) for table in tables), gate.help) for name, gate in GATES.items()
    ]
    columns = ("gate", "Trimtab", *(f"`--compat={version}`" for version in KUBERNETES), "meaning")
    about = (
        "Set with `--feature-gates=Name=true,Other=false`; `AllAlpha` and `AllBeta` set all gates of a stage. The chart\n"
        "turns HPASelectionStrategy and VPASelectorRefinement on, unless `settings.feature-gates` says otherwise. Each column has the stages and defaults of one\n"
        "setting of `--compat`.\n"
    )
    return _page(["# Feature gates\n", about, _table(columns, rows), _UPSTREAM_GATES])


def _stage(gate: Gate) -> str:
    return f"{gate.stage.value}, {'on' if gate.default else 'off'}{', locked' if gate.locked else ''}"


_UPSTREAM_GATES = """## Gates of kube-controller-manager 1.37 that Trimtab does not have

| gate there | what Trimtab does |
|---|---|
| `HPAGeneration` | `status.observedGeneration` is written wherever the server gives an HPA a generation. `--compat=kubernetes-1.36` writes none. A changed spec is reconciled at once in every setting. |
| `HPAOptimizedSelectorStore` | Conflicting HPAs are always found by an index of the namespace's selectors. |
| `StaleControllerConsistencyHPA` | The cache takes the answer to each status write, so no sync waits for the watch. |
"""


def _values() -> str:
    about = (
        "For `helm install` and `trimtab install`, with `--set` or a file; `-n` says the namespace. `settings` takes every\n"
        "[flag](flags.md) that the installation does not set itself. Wrong values are refused with their path.\n"
    )
    return _page(["# Values of the chart\n", about, f"```yaml\n{read('values.yaml')}```\n"])


def _reasons() -> str:
    text = ["# Events, conditions and reasons\n"]
    for title, reasons in (
        ("HorizontalPodAutoscaler", HORIZONTAL),
        ("VerticalPodAutoscaler and pods", VERTICAL),
    ):
        text.append(f"## {title}\n\n" + _table(("reason", "where", "meaning", "what to do"), _rows(reasons)))
    reasons_of_explain = [
        (f"`{code}`", f"{row.says[:1].upper()}{row.says[1:]}. {row.means}".strip())
        for code, row in ROWS.items()
    ]
    text.append("## Reasons of `trimtab explain`\n\n" + _table(("reason", "meaning"), reasons_of_explain))
    return _page(text)


def _rows(reasons: Mapping[str, Reason]) -> Iterator[tuple[str, ...]]:
    for name, reason in sorted(reasons.items()):
        yield f"`{name}`", reason.where, reason.meaning, reason.action


def _metrics() -> str:
    registry = CollectorRegistry()
    hpas = HpaControllerMetrics(registry)
    holders = [
        hpas,
        hpas.usage_checks,
        *(
            make(registry)
            for make in (
                RecommenderMetrics, UpdaterMetrics, AdmissionMetrics, ControlLoopMetrics, AdapterRequests,
            )
        ),
    ]  # fmt: skip
    on_scrapes: list[Metric] = [
        *PluginMetrics(Guards(NO_PLUGINS), registry).collect(),
        request_family(),
        *cache_families(),
        health_family(),
    ]
    labels = (
        {family.name: ", ".join(getattr(family, "_labelnames", ())) for family in on_scrapes}
        | {
            metric._name: ", ".join(metric._labelnames)
            for holder in holders
            for metric in vars(holder).values()
            if isinstance(metric, MetricWrapperBase)
        }
        | {
            family.name: ", ".join(getattr(family, "_labelnames", ()))
            for holder in holders
            for metric in vars(holder).values()
            if isinstance(metric, Durations | Values)
            for family in metric.describe()
        }
        | {
            metric.name: ", ".join(metric.labels)
            for holder in holders
            if isinstance(holder, RecommenderMetrics)
            for metric in vars(holder.quality).values()
            if isinstance(metric, BulkHistogram)
        }
    )
    rows = [
        (
            f"`{family.name}{'_total' if family.type == 'counter' else ''}`",
            family.type,
            labels.get(family.name, ""),
            family.documentation,
        )
        for family in sorted([*registry.collect(), *on_scrapes], key=lambda family: family.name)
        if not family.name.endswith("_created")
    ]
    about = (
        "Served at `/metrics` of the port that `--port` names. Names are upstream's where upstream has the metric.\n"
        "Those of [the adapter](../adapter.md), `trimtab_adapter_*`, are served at its own port, with the metrics of its plug-ins.\n"
    )
    return _page(["# Metrics\n", about, _table(("metric", "type", "labels", "meaning"), rows)])


def _api() -> str:
    about = "`kubectl explain thpa.spec` shows the same on a cluster.\n"
    return _page(["# API fields\n", about, *map(_kind, all_crds())])


def _kind(definition: Any) -> str:
    spec = definition["spec"]
    version = spec["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    rows = [row for part in ("spec", "status") if part in schema for row in _fields(part, schema[part])]
    title = f"## {spec['names']['kind']} ({spec['group']}/{version['name']})\n\n"
    return title + _table(("field", "type", "meaning"), rows)


def _fields(path: str, schema: Any) -> Iterator[tuple[str, ...]]:
    kind = schema.get("type", "quantity")  # what has no type of its own is a number or its text
    meaning = schema.get("description", "")
    if "enum" in schema:
        meaning += " One of " + ", ".join(str(one) for one in schema["enum"]) + "."
    if "default" in schema:
        meaning += f" Default: `{json.dumps(schema['default'])}`."
    yield f"`{path}`", kind, meaning.strip()
    for name, child in schema.get("properties", {}).items():
        yield from _fields(f"{path}.{name}", child)
    items = schema.get("items", {})
    for name, child in items.get("properties", {}).items():
        yield from _fields(f"{path}[].{name}", child)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _page(parts: list[str]) -> str:
    return _GENERATED + "\n".join(parts)


def main() -> None:
    """Write every page."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    print(f"{len(pages())} pages in docs/reference")


if __name__ == "__main__":
    main()
