"""Where values come from.

Reading order: `source` (protocol, values, and several series to one), `router` (which source serves a query, deadlines), `objects` (the
cluster's objects, for selectors), then the sources: `testing`, `prometheus`, `forward`, `plugin`.

What does not belong here: HTTP and JSON of the adapter's own API (`api`).
"""
