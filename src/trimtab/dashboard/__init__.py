"""The web page: shows what the operator decided and why; decides nothing.

`source` says what is asked of the program that is shown, `horizontal` and `vertical` answer it for a running operator.
`app` serves the page behind `guard` (Host, Origin, headers), `sessions` and `access` (who may look at what). `whatif`
asks the very `decide` that runs in production. What belongs here: words, pages, and the way to them.
"""

from trimtab.dashboard.access import Access, ClusterAccess, OneToken, Viewer
from trimtab.dashboard.app import DashboardApp
from trimtab.dashboard.assembly import dashboard_for, keep_address, serving, vertical_of
from trimtab.dashboard.elsewhere import InTheCluster
from trimtab.dashboard.loads import LabLoads
from trimtab.dashboard.onlooker import Onlooker
from trimtab.dashboard.source import Controls, HorizontalSource, VerticalSource
from trimtab.dashboard.views import Load

__all__ = [
    "Access",
    "ClusterAccess",
    "Controls",
    "DashboardApp",
    "HorizontalSource",
    "InTheCluster",
    "LabLoads",
    "Load",
    "OneToken",
    "Onlooker",
    "VerticalSource",
    "Viewer",
    "dashboard_for",
    "keep_address",
    "serving",
    "vertical_of",
]
