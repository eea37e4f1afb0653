"""The lab's storage in memory: what etcd and the watch cache are to a real server.

`store` has the objects, their recent changes and the streams that follow them; `codec` has JSON and YAML within limits, and
uids, tokens and generated names. Rules of kinds belong in `kinds`.
"""
