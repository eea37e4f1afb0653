"""The lab: an embedded cluster with an API server, controllers, nodes and load in one process.

    embedded            a whole cluster in one object; `serve` puts its API server on a socket, `data_plane` is the rest

    apiserver           the way in: HTTP, access, routes, discovery, calls to other servers
    handlers            the verbs: get, list, watch, create, update, patch, delete, and subresources
    admission, webhooks what stands between a verb and the storage
    kinds, crd          what is served, and the rules of each kind
    storage             objects, versions and the watch cache

    patches             JSON patch, merge patches, server-side apply
    schemas             the fields and types of every kind
    tables              what `kubectl get` prints
    metrics             metrics.k8s.io, custom and external metrics

    controllers         Deployments, StatefulSets, Jobs, garbage collection, disruption budgets, as tasks of the server
    nodes, load         nodes without machines, and what their pods use, as clients

A request passes the second block from top to bottom. `tests/lab` compares its responses with recordings of the real server.
"""
