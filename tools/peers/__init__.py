"""The real programs we test and measure against: etcd, Kubernetes and the upstream VPA, on loopback.

`build` compiles them once with the `go` client at pinned versions; `cluster` starts and stops them.
"""
