"""Serves custom.metrics.k8s.io and external.metrics.k8s.io as an aggregated API server.

Sources give the values: numbers set by hand (`testing`), rules over Prometheus (`prometheus`), other adapters
(`forward`). What belongs here is the server: paths, answers, discovery, who asks and whether they may, the sources and
their health. Nothing here decides about replicas.
"""
