"""Resizes in place within an update loop: request, report, revert, and end startup boosts.

Every module here changes the state of a running loop (`loop_state`) and yields actions. What one resize sends, and how
far the kubelet is with it, is in `update.resize`.
Reading order: `resize_request`, `reverts`, `vpa_resizes`, `boost_end`; `upstream_resizes` is for `--compat`.
"""
