"""The way of a request into the server and out of it.

Reading order: `asgi` (HTTP), `server` (the order of a request), `request`, `authentication`, `rbac`, `routes` (from path and verb to
a handler). `aggregator` and `outbound` call other servers, `discovery`, `openapi` and `access_reviews` answer without storage,
`bootstrap` creates the first objects, `errors` and `certificates` serve all. The verbs are in `handlers`.
"""
