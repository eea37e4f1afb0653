"""Kubernetes' own end-to-end tests of the HPA, run with Trimtab in place of the cluster's HPA controller.

The tests come unmodified from the Go module of Kubernetes. etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
metrics-server are the real programs; the node is simulated (`go/node`), so that 34 tests run at the same time on two cores.
Read `programs` (what is built), `cluster` (what is started), `cases` (the tests), `report` (the table), then `__main__`.
"""
