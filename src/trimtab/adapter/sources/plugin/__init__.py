"""Serves metrics of plug-ins.

Reading order: `source` (cache, time limit, health), `dry_run` (`trimtab adapter test`).

What does not belong here: finding and loading plug-ins, and the thread where one runs (`trimtab.plugins`).
"""
