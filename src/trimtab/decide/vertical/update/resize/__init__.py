"""One resize in place: what to send, and how far the kubelet is with it.

These modules read one pod. They are independent of the update loop and of budgets.
Reading order: `plan` (patch and annotations), `annotation` (the last request, stored on the pod), `status` (what the
kubelet reports), `memory_limits` (limits that cannot be lowered while the memory is in use).
"""
