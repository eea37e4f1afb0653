"""A real Kubernetes node on one machine: kubelet, containerd and runc in user-mode Linux, which is an ordinary process.

Nothing of this machine is changed: no cgroup, sysctl, bridge or tap, and every port is on loopback. Read `programs` (what is
built), `packages` (what Debian has), `oci` and `disk` (what the node boots from), `machine` (the guest as processes), `node`
(a kubelet that joins a control plane), `egress` (the ways to its pods), then `cluster` (everything that the tests need).
"""
