"""The Helm chart, written from the trees of the manifests.

`templates` writes trees as templates, `files` lists the files of the chart. What the chart contains is in the package above.
"""

from trimtab.install.chart.files import chart_files

__all__ = ["chart_files"]
