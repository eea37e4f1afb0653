"""Which users may read, and the TLS that proves the front proxy.

Reading order: `access` (the user of a request, and what the cluster allows), `front_proxy` (which certificates are kube-apiserver's, and
their verification), `tls` (the server's contexts).
"""
