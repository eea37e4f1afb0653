"""The web page that shows what the operator decided and why.

Reading order: `dashboard` (the component), `read_only` (decisions of a replica that must not act), `sources` (what is
shown), `pages` (values and words of each page), `web` (HTTP), `auth` (logins and permissions), `static` (the scripts).

What belongs here: presentation. What does not: decisions. The what-if calls the `decide` that runs in production.
"""

from trimtab.dashboard.auth.access import ClusterAccess
from trimtab.dashboard.dashboard import dashboard_for, serving, write_address
from trimtab.dashboard.pages.views import LoadView, StoryView
from trimtab.dashboard.sources.lab_load import LabLoads
from trimtab.dashboard.sources.remote import RemoteState
from trimtab.dashboard.sources.vertical import OperatorVertical
from trimtab.dashboard.web.app import DashboardApp

__all__ = [
    "ClusterAccess",
    "DashboardApp",
    "LabLoads",
    "LoadView",
    "OperatorVertical",
    "RemoteState",
    "StoryView",
    "dashboard_for",
    "serving",
    "write_address",
]
