"""Trimtab on real nodes: a kubelet, containerd and cgroups that enforce what is decided. `make test-node` runs these."""
