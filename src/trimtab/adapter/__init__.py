"""Serves custom.metrics.k8s.io and external.metrics.k8s.io as an aggregated API server.

Reading order: `config` and `files` (the configuration), `adapter` (wiring), `api` (requests and responses), `auth`
(authentication, authorization, TLS), `sources` (which return the values), `metrics`, `errors`.

What belongs here: the server and its sources. What does not: decisions about replicas.
"""
