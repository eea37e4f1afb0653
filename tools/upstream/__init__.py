"""Kubernetes' own end-to-end tests of the HPA, run with Trimtab in place of the cluster's HPA controller.

The tests come unmodified from the Go module of Kubernetes. etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
metrics-server are the real programs. The node is simulated (`go/node`), so that 34 tests run at the same time on two cores, or it is
a real kubelet in user-mode Linux (`tools.node`), for a handful of tests. Read `programs` (what is built), `cluster` (what is
started), `cases` (the tests), `chosen` (which of them), `report` (the table), then `__main__`.
"""
