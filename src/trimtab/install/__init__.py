"""Installs Trimtab: the Helm chart, and a program that renders it for those who have no Helm.

`chart` is written by hand, in Helm's language; `charts/trimtab` of the repository leads there. `values` takes values files and
`--set`, `schema` checks them by the chart's own schema, `templates` renders, `manifests` puts it together.

What belongs here: the objects of an installation. What does not: what the installed programs do.
"""

from trimtab.install.manifests import CRDS, manifests
from trimtab.install.values import ValueProblem, default_values, set_values

__all__ = ["CRDS", "ValueProblem", "default_values", "manifests", "set_values"]
