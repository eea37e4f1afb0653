"""Which users may read, and the TLS that proves the front proxy.

Reading order: `authentication` (the user of a request), `front_proxy` (which certificates are kube-apiserver's),
`certificate_chains` (verification), `authorization` (SubjectAccessReviews), `tls` (the server's contexts).
"""
