"""Serves ASGI applications: the lab, the adapter, the webhooks, the dashboard and the health port.

Reading order: `server` (sockets), `connections` (limits that clients share), `protocol` (limits of a connection), `asgi`
(request bodies and responses), `tls` (contexts and their renewal), `certificates` (creates key pairs).

What belongs here: what every server needs. What does not: routes and permissions.
"""
