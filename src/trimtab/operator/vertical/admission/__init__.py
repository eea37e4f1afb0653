"""The admission webhook: sizes pods at creation, and completes and validates VPAs and VPAScopes.

`webhook` is the component. `tls` checks the TLS flags, `app` reads requests, and `reviews` answers them with the VPAs
that `vpa_lookup` finds. `certificates` issues and renews key pairs, `registration` keeps the webhook
configurations up to date. Requests are untrusted: no field of a body is used as a file, a host or a command.
"""
