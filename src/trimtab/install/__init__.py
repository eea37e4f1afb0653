"""Everything that an installation consists of, from one source: flat YAML and the Helm chart are two readings of it.

`parts` of the installation (rights, workloads, network, monitoring) are trees of plain data with a few holes for
values. `tree.resolve` fills the holes and gives objects; `chart` writes the same holes as Helm expressions. So neither
can say something that the other does not. What belongs here: manifests. What they do when they run is elsewhere.
"""

from trimtab.install.chart import chart_files
from trimtab.install.manifests import manifests
from trimtab.install.values import ChartValue, ValueProblem, default_values, set_values

__all__ = ["ChartValue", "ValueProblem", "chart_files", "default_values", "manifests", "set_values"]
