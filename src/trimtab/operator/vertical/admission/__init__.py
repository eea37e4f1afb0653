"""Admission webhooks: pods get their sizes at creation, VPAs and VPAScopes their defaults and checks.

`reviews` turns a request's bytes into an answer's bytes and never raises; `app` is the ASGI shell around it, `serving`
the TLS server, `certificates` makes and rotates key pairs, `registration` keeps the webhook configurations right.
Whoever calls is not trusted: nothing in a body names a file, a host or a process (S7).
"""
