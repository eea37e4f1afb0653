"""The test kit for authors of plug-ins: properties that every plug-in of a kind must have.

    from trimtab.plugins.testing import check_pod_filter

    def test_it_keeps_the_protocol():
        check_pod_filter(keep_not_draining)

Each function calls the plug-in with generated inputs and raises AssertionError with the input that it fails on. It checks that the
answer is allowed (bounds), that equal inputs give equal answers (determinism), that the input cannot be changed (purity), and that
no call takes longer than its budget (time). A plug-in that declines every input fails, because nothing of it was checked. A
`PluginTestWarning` is about what is allowed and hardly meant: a filter that leaves out every pod, or a memory that never settles.
A metric source is not pure: it is checked for metrics that exist and do not, all kinds of selectors, its time limit, and many calls
at a time.

Read `cases` (the inputs), `asker` (what is said about one answer), `source_check` (metric sources), then `kit`.
"""

from trimtab.plugins.testing.asker import PluginTestError, PluginTestWarning
from trimtab.plugins.testing.kit import (
    check_estimator,
    check_plugin,
    check_pod_filter,
    check_replica_policy,
)
from trimtab.plugins.testing.source_check import check_metric_source

__all__ = [
    "PluginTestError",
    "PluginTestWarning",
    "check_estimator",
    "check_metric_source",
    "check_plugin",
    "check_pod_filter",
    "check_replica_policy",
]
