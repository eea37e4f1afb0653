"""The lab: an embedded cluster with an API server, controllers, nodes and load in one process.

    embedded            a whole cluster in one object; `serve` puts its API server on a socket, `data_plane` is the rest

    apiserver           the way in: HTTP, authentication, authorization, routes, aggregation
    handlers            the verbs: get, list, watch, create, update, patch, delete, scale, eviction
    admission           plugins and webhooks between a verb and the storage
    resources           what is served, and the rules of each kind; `crd` for custom resources
    storage             objects, versions and the watch cache

    patches             JSON patch, merge patches, server-side apply
    schemas             the fields and types of every kind
    tables              what `kubectl get` prints
    metrics             metrics.k8s.io, custom and external metrics

    controllers         Deployments, StatefulSets, Jobs, garbage collection, disruption budgets
    nodes, load         nodes without machines, and what their pods use

A request passes the second block from top to bottom. `tests/lab` compares its responses with recordings of the real server.
"""
