"""The web page: shows what the operator decided and why; decides nothing.

`source` says what is asked of the program that is shown, `horizontal` and `vertical` answer it for a running operator.
`app` serves the page behind `guard` (Host, Origin, headers), `sessions` and `access` (who may look at what). `whatif`
asks the very `decide` that runs in production. What belongs here: words, pages, and the way to them.
"""

from trimtab.dashboard.auth.access import Access, ClusterAccess, OneToken, Viewer
from trimtab.dashboard.dashboard import dashboard_for, keep_address, serving, vertical_of
from trimtab.dashboard.pages.views import LoadView
from trimtab.dashboard.read_only import ReadOnlyDecider
from trimtab.dashboard.sources import Controls, HorizontalSource, VerticalSource
from trimtab.dashboard.sources.lab_load import LabLoads
from trimtab.dashboard.sources.remote import RemoteState
from trimtab.dashboard.web.app import DashboardApp

__all__ = [
    "Access",
    "ClusterAccess",
    "Controls",
    "DashboardApp",
    "HorizontalSource",
    "LabLoads",
    "LoadView",
    "OneToken",
    "ReadOnlyDecider",
    "RemoteState",
    "VerticalSource",
    "Viewer",
    "dashboard_for",
    "keep_address",
    "serving",
    "vertical_of",
]
