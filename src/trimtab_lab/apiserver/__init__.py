"""The way of a request into the server and out of it.

Reading order: `asgi` (HTTP), `server` (the order of a request), `request`, `access` (who may do what), `routes` (from path and verb
to a handler). `discovery` and `openapi` say what is served, `outbound` calls other servers, `bootstrap` creates the first objects,
`errors` serves all. The verbs are in `handlers`.
"""
