"""Where values come from.

Reading order: `source` (protocol and values), `router` (which source serves a query, deadlines), `objects` (the cluster's
objects, for selectors), `collapse` (several series to one value), then the sources: `testing`, `prometheus`, `forward`.

What does not belong here: HTTP and JSON of the adapter's own API (`api`).
"""
