"""Sends single requests to an API server.

Reading order: `transport` (the interface), `sender` (retries, fence, errors), `lanes` (what cannot delay each other),
`rate_limits`, `server_clock`, `dry_run` (what a dry run may write),
`in_process` and `asgi` (transports without a socket). The transport with sockets is in `cluster.http`.
"""
