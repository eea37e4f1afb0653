"""The README of the chart, with a table of its values."""

import json
from typing import Final

import trimtab
from trimtab.install.values.table import CHART_VALUES

_TEXT: Final = """<!-- Made by `python -m tools.chart`; do not edit. -->
# Trimtab

A Kubernetes pod autoscaler that counts the right pods and shows why: horizontal and vertical autoscalers, a metrics adapter and a dashboard.

Needs Kubernetes 1.30 or newer (tested with 1.34 to 1.37), Helm 3.14 or newer, and metrics-server for CPU and memory.

## Install

```sh
helm install trimtab CHART -n trimtab --create-namespace --set image.repository=registry.example.com/trimtab
kubectl label namespace trimtab pod-security.kubernetes.io/enforce=restricted
helm test trimtab -n trimtab
```

`CHART` is `charts/trimtab` of a clone, a `trimtab-{version}.tgz`, or the `oci://` address of a release. `--set dryRun=true` lets it decide and explain everything and change nothing.

## Upgrade

```sh
helm upgrade trimtab CHART -n trimtab --reset-then-reuse-values
```

`--reset-then-reuse-values` keeps what you set and takes the defaults of new values from the new chart. `--reuse-values` does not,
and the schema then names the values that are missing.

## Uninstall

```sh
helm uninstall trimtab -n trimtab
kubectl delete namespace trimtab
```

The first command removes every object of the chart, webhook configurations and Leases included. The definitions stay, and with them your
autoscalers. To delete both:

```sh
kubectl delete crd horizontalpodautoscalers.autoscaling.trimtab.dev vpascopes.autoscaling.k8s.io
kubectl delete crd verticalpodautoscalers.autoscaling.k8s.io verticalpodautoscalercheckpoints.autoscaling.k8s.io   # unless the upstream VPA uses them
```

## Values

`values.schema.json` rejects unknown values and wrong types. `trimtab install --set` and `-f` take the same values and print flat YAML.

| value | default | meaning |
| --- | --- | --- |
"""


def readme() -> str:
    """Return the text of README.md."""
    rows = [f"| `{value.path}` | {_code(value.default)} | {_cell(value.help)} |" for value in CHART_VALUES]
    return _TEXT.replace("{version}", trimtab.__version__) + "\n".join(rows) + "\n"


def _code(value: object) -> str:
    return f"`{_cell(json.dumps(value))}`"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
