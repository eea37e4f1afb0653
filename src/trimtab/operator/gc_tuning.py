"""Tunes Python's garbage collector for a program that runs for months.

Reference counting frees nearly everything that a sync allocates, and API objects are not tracked by the collector
(`model.json.wire`). Only tasks and exceptions that refer to themselves are left to it. Python's defaults collect after
every 700 new objects and walk all tracked objects now and then, which takes 10 % of a sync of 1,000 HPAs.
"""

import gc

THRESHOLDS = (50_000, 20, 20)
"""New objects per young collection (about one sync of 1,000 HPAs), and young collections per older one."""


def collect_less_often() -> None:
    """Raise the collector's thresholds. Call it before imports, which allocate much and leave no garbage."""
    gc.set_threshold(*THRESHOLDS)


def freeze_startup_objects() -> None:
    """Call `gc.freeze()` so that the collector skips the objects of the start-up."""
    gc.freeze()
