"""Serves metrics of plug-ins.

Reading order: `thread` (where a plug-in runs), `source` (cache, time limit, health), `dry_run` (`trimtab adapter test`).

What does not belong here: finding and loading plug-ins (`trimtab.plugins`).
"""
