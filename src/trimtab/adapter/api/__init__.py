"""HTTP side of the adapter: a request in, a Kubernetes list or Status out.

Reading order: `app` (the path of a request), `routes` (path to query), `requests` (the queries), `responses` (the JSON of
values), `discovery` (which metrics exist), `health` (states of sources and rules).

What does not belong here: where values come from (`sources`) and which users are allowed (`auth`).
"""
